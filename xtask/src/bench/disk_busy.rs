//! 100 pods of which one container after the other is killed, while another program keeps their
//! disk busy.

use anyhow::Result;
use rubelet_testbed::{Agent, CriTruth, NoisyNeighbour, Scratch};

use super::embedded::{agent_with, environment};
use super::report::Results;
use super::restarts::{kill_each, victims};
use super::{Request, hundred_pods, progress, quantile};

/// Measures `embedded_kill_to_created_disk_busy_ms_p50` and `_p99`.
pub(super) fn embedded(request: &Request<'_>, results: &mut Results) -> Result<()> {
    let environment = environment(request)?;
    let builder = agent_with(request, &environment, hundred_pods::PODS);
    progress("start 100 pods on the embedded runtime");
    let agent = builder.start()?;
    let created = created(&environment.truth()?, &agent, environment.scratch())?;
    let [middle, late] = [0.50, 0.99].map(|share| quantile(&created, share));
    results.add("embedded_kill_to_created_disk_busy_ms_p50", middle);
    results.add("embedded_kill_to_created_disk_busy_ms_p99", late);
    drop(agent);
    environment.remove()
}

/// Measures `kill_to_created_disk_busy_ms_p50` and `_p99`.
pub(super) fn containerd(request: &Request<'_>, results: &mut Results) -> Result<()> {
    let (containerd, agent) = hundred_pods::start(request)?;
    let created = created(&containerd.truth()?, &agent, containerd.scratch())?;
    let [middle, late] = [0.50, 0.99].map(|share| quantile(&created, share));
    results.add("kill_to_created_disk_busy_ms_p50", middle);
    results.add("kill_to_created_disk_busy_ms_p99", late);
    drop(agent);
    containerd.remove()
}

/// The times until the replacements are created, in milliseconds, sorted.
fn created(truth: &CriTruth, agent: &Agent, scratch: &Scratch) -> Result<Vec<f64>> {
    hundred_pods::until_ready(agent)?;
    let victims = victims(truth)?;
    // On the file system of the pods, and of all records.
    let writer = NoisyNeighbour::start(0, Some(scratch.dir().join("neighbour")))?;
    let times = kill_each(truth, agent, &victims)?;
    drop(writer);
    Ok(times.created)
}
