//! 1000 pods.

use anyhow::Result;

use super::super::hundred_pods::until_pods_ready;
use super::super::report::Results;
use super::super::{Request, progress};
use super::{agent_with, environment};

const PODS: usize = 1000;
/// The usual soft limit of services and shells; such an agent opens more files.
const SOFT_LIMIT: u32 = 1024;

/// Measures `embedded_start_1000_s`.
pub(in super::super) fn measure(request: &Request<'_>, results: &mut Results) -> Result<()> {
    let embedded = environment(request)?.with_wide_subnet()?;
    let builder = agent_with(request, &embedded, PODS)
        .config("maxPods", PODS + 10)
        .started_with_open_files(SOFT_LIMIT)?;
    progress("start 1000 pods on the embedded runtime");
    let agent = builder.start()?;
    let took = until_pods_ready(&agent, PODS)?;
    results.add("embedded_start_1000_s", took.as_secs_f64());
    drop(agent);
    embedded.remove()
}
