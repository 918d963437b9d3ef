//! Sequential pods through the runtime's own socket, without an agent: the time of each, of a
//! command in it, and the memory of its shim.

use anyhow::{Context, Result, ensure};
use rubelet_testbed::cleanup::processes;
use rubelet_testbed::{Served, clock, proc};

use super::super::bare::{self, sandbox};
use super::super::report::Results;
use super::super::{Request, progress, quantile};
use super::environment;

const PODS: usize = 100;
/// Pods that are not measured: the first ones warm up code and caches.
const WARM_UP: usize = 5;

/// Measures `embedded_pod_start_ms_p50`, `_p99`, `embedded_exec_ms_p50` and `shim_private_kib`.
pub(in super::super) fn measure(request: &Request<'_>, results: &mut Results) -> Result<()> {
    let served = Served::start_in(environment(request)?, &request.program)?;
    let truth = served.truth()?;
    progress("one pod after the other on the embedded runtime");
    let logs = served.scratch().subdir("logs")?.display().to_string();
    let cgroup = format!("{}/pods", served.scratch().cgroup_root());
    let mut starts = Vec::new();
    let mut containers = Vec::new();
    for number in 0..WARM_UP + PODS {
        let config = sandbox(number, &logs, &cgroup);
        let start = clock::now();
        let pod = truth.block_on(bare::start_pod(truth.client(), config))?;
        starts.push(start.elapsed().as_secs_f64() * 1000.0);
        containers.push(pod.container);
    }
    starts.drain(..WARM_UP);
    starts.sort_by(f64::total_cmp);
    results.add("embedded_pod_start_ms_p50", quantile(&starts, 0.50));
    results.add("embedded_pod_start_ms_p99", quantile(&starts, 0.99));
    if request.includes("shim_private_kib") {
        let mut sizes = Vec::new();
        for pid in processes::of(served.scratch()) {
            if is_shim(pid) {
                sizes.push(private_kib(pid)?);
            }
        }
        ensure!(sizes.len() >= PODS, "found only {} shims", sizes.len());
        sizes.sort_by(f64::total_cmp);
        results.add("shim_private_kib", quantile(&sizes, 0.50));
    }
    if request.includes("embedded_exec_ms_p50") {
        let mut times = Vec::new();
        for container in &containers {
            let start = clock::now();
            truth.exec(container, &["true"])?;
            times.push(start.elapsed().as_secs_f64() * 1000.0);
        }
        times.sort_by(f64::total_cmp);
        results.add("embedded_exec_ms_p50", quantile(&times, 0.50));
    }
    served.remove()
}

/// Whether the process is a shim, by its command line.
fn is_shim(pid: u32) -> bool {
    let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    line.split(|byte| *byte == 0).nth(1) == Some(b"shim")
}

/// Private memory, in KiB.
fn private_kib(pid: u32) -> Result<f64> {
    let bytes = proc::private_bytes(pid).context("a shim has exited")?;
    #[expect(clippy::cast_precision_loss, reason = "sizes are far below 2^52 bytes")]
    let bytes = bytes as f64;
    Ok(bytes / 1024.0)
}
