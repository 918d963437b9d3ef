//! 100 pods of which one container after the other is killed: how soon its replacement is created
//! and running.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, ensure};
use rubelet_testbed::cri_truth::Container;
use rubelet_testbed::{Agent, CriTruth, proc, wait};
use serde_json::Value;

use super::report::Results;
use super::{Request, hundred_pods, progress, quantile};

/// Idle time before the first kill, and after each.
const SETTLE: Duration = Duration::from_secs(10);
/// Delay from a kill to the first query of the runtime: a query costs it time, which must not be
/// measured.
const PAUSE: Duration = Duration::from_millis(250);
const POLL_INTERVAL: Duration = Duration::from_millis(100);
const TIMEOUT: Duration = Duration::from_secs(60);
/// The lifecycle events that the agent's PLEG reported to pods.
const LIFECYCLE_EVENTS: &str = "/apis/node.rubelet.dev/v1alpha1/podlifecycleevents";
/// Number of exits that must be detected by an event for their times to be meaningful.
const ENOUGH: usize = hundred_pods::PODS * 9 / 10;

/// Measures `kill_to_created_ms`, `kill_to_running_ms` and `exit_event_to_sync_ms`, each with
/// `_p50` and `_p99`.
/// The kill is timed here; the creation and the start are the runtime's timestamps. All use the
/// wall clock of the same machine. A replacement may be created before the runtime reports the
/// exit: the pod is complete again only when it runs. Each pod loses its container once, so that no
/// back-off applies.
pub(super) fn measure(request: &Request<'_>, results: &mut Results) -> Result<()> {
    let (containerd, agent) = hundred_pods::start(request)?;
    hundred_pods::until_ready(&agent)?;
    let truth = containerd.truth()?;
    let victims = victims(&truth)?;
    let times = kill_each(&truth, &agent, &victims)?;
    results.add("kill_to_created_ms_p50", quantile(&times.created, 0.50));
    results.add("kill_to_created_ms_p99", quantile(&times.created, 0.99));
    results.add("kill_to_running_ms_p50", quantile(&times.running, 0.50));
    results.add("kill_to_running_ms_p99", quantile(&times.running, 0.99));
    if request.includes("exit_event_to_sync_ms_p50")
        || request.includes("exit_event_to_sync_ms_p99")
    {
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

/// The time from each kill of a container until a step of its replacement, in milliseconds, sorted.
#[derive(Debug, Default)]
pub(super) struct Times {
    /// Until it was created.
    pub(super) created: Vec<f64>,
    /// Until it was started.
    pub(super) running: Vec<f64>,
}

/// Kills one container after the other.
pub(super) fn kill_each(
    truth: &CriTruth,
    agent: &Agent,
    victims: &[(u32, Container)],
) -> Result<Times> {
    wait::pass(SETTLE);
    progress("kill one container after the other");
    let mut times = Times::default();
    for (pid, victim) in victims {
        let killed_at = proc::kill9(*pid)?;
        wait::pass(PAUSE);
        let new = replaced(truth, victim).with_context(|| agent.circumstances())?;
        times.created.push(since(killed_at, new.created_at)?);
        let started_at = truth.started_at(&new.id)?;
        times.running.push(since(killed_at, started_at)?);
    }
    times.created.sort_by(f64::total_cmp);
    times.running.sort_by(f64::total_cmp);
    Ok(times)
}

/// Milliseconds from the kill until a time of the runtime, which is in nanoseconds since 1970.
fn since(killed_at: SystemTime, nanoseconds: i64) -> Result<f64> {
    let since_epoch = u64::try_from(nanoseconds).context("a container is from before 1970")?;
    let took = (UNIX_EPOCH + Duration::from_nanos(since_epoch))
        .duration_since(killed_at)
        .context("a replacement is older than the kill")?;
    Ok(took.as_secs_f64() * 1000.0)
}

/// Waits for the container that replaces the victim.
fn replaced(truth: &CriTruth, victim: &Container) -> Result<Container> {
    let what = format!("the container of {} is replaced", victim.pod);
    wait::until_every(POLL_INTERVAL, &what, TIMEOUT, || {
        let mut found = truth.containers_of(&victim.sandbox)?;
        found.retain(|one| one.created_at > victim.created_at && one.is_running());
        Ok(found.pop())
    })
}

/// The time from the arrival of the runtime's event of each exit until the pod's task began to
/// handle it, as recorded by the agent; in milliseconds, sorted.
fn event_to_sync(agent: &Agent, victims: &[(u32, Container)]) -> Result<Vec<f64>> {
    let list = agent.get_json(LIFECYCLE_EVENTS)?;
    let events = list["items"].as_array().context("the list has no items")?;
    let mut times = Vec::new();
    for (_, victim) in victims {
        let end = |event: &&Value| event["type"] == "ContainerDied" && event["id"] == victim.id;
        let event = events.iter().find(end);
        let event = event.with_context(|| format!("no exit of {} was reported", victim.pod))?;
        let seconds = |field: &str| event[field].as_f64();
        // An exit that was found by a relist for another reason had no event.
        if let (Some(before), Some(after)) =
            (seconds("afterEventSeconds"), seconds("toStartSeconds"))
        {
            times.push((before + after) * 1000.0);
        }
    }
    ensure!(
        times.len() >= ENOUGH,
        "only {} of {} exits were found by an event",
        times.len(),
        victims.len()
    );
    times.sort_by(f64::total_cmp);
    Ok(times)
}
