//! The time of a runtime for 100 pods without an agent: a lower bound for any agent on it.

use anyhow::Result;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use rubelet_testbed::containerd::{HostPorts, Line};
use rubelet_testbed::{Containerd, clock};

use super::hundred_pods::PODS;
use super::report::Results;
use super::{Request, bare, progress};

/// Concurrent pod starts: as many as the agent allows on two CPUs.
const STARTS_AT_ONCE: usize = 8;

/// Measures `start_100_alone_s` and `stop_100_alone_s`.
pub(super) fn measure(_: &Request<'_>, results: &mut Results) -> Result<()> {
    let containerd = Containerd::start_line(Line::V2, HostPorts::None)?;
    let logs = containerd.scratch().subdir("logs")?.display().to_string();
    let cgroup = format!("{}/pods", containerd.scratch().cgroup_root());
    let truth = containerd.truth()?;
    let client = truth.client();
    progress("100 pods of a runtime without an agent");
    let start = clock::now();
    let starts = (0..PODS).map(|number| bare::sandbox(number, &logs, &cgroup));
    let starts = stream::iter(starts)
        .map(|config| bare::start_pod(client, config))
        .buffer_unordered(STARTS_AT_ONCE);
    let pods: Vec<bare::Pod> = truth.block_on(starts.try_collect())?;
    results.add("start_100_alone_s", start.elapsed().as_secs_f64());
    let start = clock::now();
    let stops = stream::iter(pods)
        .map(|pod| bare::stop_pod(client, pod))
        .buffer_unordered(PODS);
    let _: Vec<()> = truth.block_on(stops.try_collect())?;
    results.add("stop_100_alone_s", start.elapsed().as_secs_f64());
    containerd.remove()
}
