//! The same with a kubelet, if there is one to compare with.

use anyhow::{Context, Result};
use rubelet_testbed::{
    Containerd, clock,
    containerd::{HostPorts, Line},
    proc, wait,
};

use super::statistics::{are_complete, cadvisor_ms, get_port, scraped_percent, summary_ms};
use super::{
    IDLE_NAMES, MINUTE, PODS, POLL_INTERVAL, SETTLE, TIMEOUT, file_name, idle_percent, manifest,
    mib, progress, until_stopped,
};
use crate::bench::{
    Request,
    kubelet::{self, Kubelet},
};

/// Measures the selected benchmarks and prints them, only for comparison. Nothing authenticates: all is read from the port
/// for everyone.
pub(super) fn measure(request: &Request<'_>) -> Result<()> {
    let Some(program) = kubelet::program() else {
        return Ok(());
    };
    progress("the same with a kubelet");
    let containerd = Containerd::start_line(Line::V2, HostPorts::None)?;
    let truth = containerd.truth()?;
    let manifests = (0..PODS).map(|number| (file_name(number), manifest(number)));
    let start = clock::now();
    let kubelet = Kubelet::start(&program, &containerd, manifests, None)?;
    wait::until_every(POLL_INTERVAL, "100 containers run", TIMEOUT, || {
        let containers = truth.containers()?;
        let running = containers.iter().filter(|one| one.is_running()).count();
        Ok((running == PODS).then_some(()))
    })?;
    show("start_100_s", start.elapsed().as_secs_f64());
    if request.includes("rss_mib_100_1min") {
        wait::pass(MINUTE);
        let rss = proc::rss_bytes(kubelet.pid()).context("the kubelet has exited")?;
        show("rss_mib_100_1min", mib(rss));
    }
    if IDLE_NAMES.iter().any(|name| request.includes(name)) {
        wait::pass(SETTLE);
        let runtime = containerd.pid().context("containerd has exited")?;
        let [own, runtime] = idle_percent([kubelet.pid(), runtime])?;
        show("cpu_idle_pct_100", own);
        show("runtime_cpu_idle_pct_100", runtime);
    }
    statistics(request, &kubelet)?;
    if request.includes("stop_100_s") {
        let took = until_stopped(&truth, |name| kubelet.remove_manifest(name))?;
        show("stop_100_s", took.as_secs_f64());
    }
    drop(kubelet);
    containerd.remove()
}

fn statistics(request: &Request<'_>, kubelet: &Kubelet) -> Result<()> {
    let port = kubelet.read_only_port;
    let names = ["summary_ms_100", "cadvisor_ms_100", "stats_cpu_pct_100"];
    let [summary, cadvisor, cpu] = names.map(|name| request.includes(name));
    if summary || cadvisor {
        wait::until("the statistics are complete", TIMEOUT, || {
            Ok(are_complete(port)?.then_some(()))
        })?;
    }
    if summary {
        show("summary_ms_100", summary_ms(|path| get_port(port, path))?);
    }
    if cadvisor {
        show("cadvisor_ms_100", cadvisor_ms(port)?);
    }
    if cpu {
        show("stats_cpu_pct_100", scraped_percent(kubelet.pid(), port)?);
    }
    Ok(())
}

fn show(name: &str, value: f64) {
    progress(&format!("kubelet: {name} = {value:.2}"));
}
