//! 100 pods of which one container after the other is killed.

use anyhow::Result;

use super::super::hundred_pods::{PODS, until_ready};
use super::super::report::Results;
use super::super::restarts::{kill_each, victims};
use super::super::{Request, progress, quantile};
use super::{agent_with, environment};

/// Measures `embedded_kill_to_created_ms_p50` and `embedded_kill_to_running_ms_p50` and `_p99`, in
/// the same way as on containerd.
pub(in super::super) fn measure(request: &Request<'_>, results: &mut Results) -> Result<()> {
    let embedded = environment(request)?;
    let builder = agent_with(request, &embedded, PODS);
    progress("start 100 pods on the embedded runtime");
    let agent = builder.start()?;
    until_ready(&agent)?;
    let truth = embedded.truth()?;
    let times = kill_each(&truth, &agent, &victims(&truth)?)?;
    let (created, running) = (&times.created, &times.running);
    results.add("embedded_kill_to_created_ms_p50", quantile(created, 0.50));
    results.add("embedded_kill_to_running_ms_p50", quantile(running, 0.50));
    results.add("embedded_kill_to_running_ms_p99", quantile(running, 0.99));
    drop(agent);
    embedded.remove()
}
