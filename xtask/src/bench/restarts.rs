//! 100 pods of which one container after the other is killed: how soon the runtime shows its
//! replacement.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, ensure};
use rubelet_testbed::cri_truth::Container;
use rubelet_testbed::{Agent, CriTruth, proc, wait};
use serde_json::Value;

use super::report::Results;
use super::{Request, hundred_pods, progress, quantile};

/// How long everything is left alone before the first kill, and after each.
const SETTLE: Duration = Duration::from_secs(10);
/// The time from a kill to the first look at the runtime: a look costs it time, which is not to
/// be measured.
const PAUSE: Duration = Duration::from_millis(250);
const LOOK_EVERY: Duration = Duration::from_millis(100);
const TIMEOUT: Duration = Duration::from_secs(60);
/// What the agent's PLEG told the tasks of pods.
const LIFECYCLE_EVENTS: &str = "/apis/node.rubelet.dev/v1alpha1/podlifecycleevents";
/// So many of the ends must have been found by an event for their times to say something.
const ENOUGH: usize = hundred_pods::PODS * 9 / 10;

/// Measures `kill_to_created_ms_p50` and `_p99`, and `exit_event_to_sync_ms_p50` and `_p99`.
///
/// The kill is timed here, and the creation by the runtime's own word, both by the wall clock of
/// the same machine. Each pod loses its container once, so that no back-off applies.
pub(super) fn measure(request: &Request<'_>, results: &mut Results) -> Result<()> {
    let (containerd, agent) = hundred_pods::start(request)?;
    hundred_pods::until_ready(&agent)?;
    let truth = containerd.truth()?;
    let victims = victims(&truth)?;
    let times = kill_each(&truth, &agent, &victims)?;
    results.add("kill_to_created_ms_p50", quantile(&times, 0.50));
    results.add("kill_to_created_ms_p99", quantile(&times, 0.99));
    if request.wants("exit_event_to_sync_ms_p50") || request.wants("exit_event_to_sync_ms_p99") {
        let times = event_to_sync(&agent, &victims)?;
        results.add("exit_event_to_sync_ms_p50", quantile(&times, 0.50));
        results.add("exit_event_to_sync_ms_p99", quantile(&times, 0.99));
    }
    drop(agent);
    containerd.remove()
}

/// All containers, with their processes.
pub(super) fn victims(truth: &CriTruth) -> Result<Vec<(u32, Container)>> {
    let mut victims = Vec::new();
    for container in truth.containers()? {
        victims.push((truth.pid(&container.id)?, container));
    }
    ensure!(
        victims.len() == hundred_pods::PODS,
        "{} containers are there",
        victims.len()
    );
    Ok(victims)
}

/// Kills one container after the other. From each kill until the replacement was created, in
/// milliseconds, sorted.
pub(super) fn kill_each(
    truth: &CriTruth,
    agent: &Agent,
    victims: &[(u32, Container)],
) -> Result<Vec<f64>> {
    wait::pass(SETTLE);
    progress("kill one container after the other");
    let mut times = Vec::new();
    for (pid, victim) in victims {
        let killed_at = proc::kill9(*pid)?;
        wait::pass(PAUSE);
        let created_at = replaced(truth, victim).with_context(|| agent.circumstances())?;
        let took = created_at
            .duration_since(killed_at)
            .context("a replacement is older than the kill")?;
        times.push(took.as_secs_f64() * 1000.0);
    }
    times.sort_by(f64::total_cmp);
    Ok(times)
}

/// Waits for the container that takes the victim's place; when the runtime created it.
fn replaced(truth: &CriTruth, victim: &Container) -> Result<SystemTime> {
    let what = format!("the container of {} is replaced", victim.pod);
    let new = wait::until_every(LOOK_EVERY, &what, TIMEOUT, || {
        let mut found = truth.containers_of(&victim.sandbox)?;
        found.retain(|one| one.created_at > victim.created_at && one.is_running());
        Ok(found.pop())
    })?;
    let since_epoch = u64::try_from(new.created_at).context("a container is from before 1970")?;
    Ok(UNIX_EPOCH + Duration::from_nanos(since_epoch))
}

/// From the arrival of the runtime's event of each end until the pod's task began to work on it, by
/// the agent's own account; in milliseconds, sorted.
fn event_to_sync(agent: &Agent, victims: &[(u32, Container)]) -> Result<Vec<f64>> {
    let list = agent.get_json(LIFECYCLE_EVENTS)?;
    let events = list["items"].as_array().context("the list has no items")?;
    let mut times = Vec::new();
    for (_, victim) in victims {
        let end = |event: &&Value| event["type"] == "ContainerDied" && event["id"] == victim.id;
        let event = events.iter().find(end);
        let event = event.with_context(|| format!("no end of {} was told", victim.pod))?;
        let seconds = |field: &str| event[field].as_f64();
        // What was found by a look that had another cause came without an event.
        if let (Some(before), Some(after)) =
            (seconds("afterEventSeconds"), seconds("toStartSeconds"))
        {
            times.push((before + after) * 1000.0);
        }
    }
    ensure!(
        times.len() >= ENOUGH,
        "only {} of {} ends were found by an event",
        times.len(),
        victims.len()
    );
    times.sort_by(f64::total_cmp);
    Ok(times)
}
