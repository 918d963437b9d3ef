//! An idle agent without pods.

use std::time::Duration;

use anyhow::{Context, Result};
use rubelet_testbed::{Agent, Containerd, proc, wait};

use super::report::Results;
use super::{Request, mib, progress};

const READY_TIMEOUT: Duration = Duration::from_secs(60);
/// Idle time before the measurement.
const SETTLE: Duration = Duration::from_secs(10);

/// Measures `rss_mib_0`.
pub(super) fn measure(request: &Request<'_>, results: &mut Results) -> Result<()> {
    progress("an agent without pods");
    let containerd = Containerd::start()?;
    let agent = Agent::builder(&containerd)
        .program(&request.program)
        .start()?;
    agent.wait_ready(READY_TIMEOUT)?;
    wait::pass(SETTLE);
    let pid = agent.pid().context("the agent has exited")?;
    let rss = proc::rss_bytes(pid).context("the agent has exited")?;
    results.add("rss_mib_0", mib(rss));
    drop(agent);
    containerd.remove()
}
