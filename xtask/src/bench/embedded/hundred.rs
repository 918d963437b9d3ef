//! 100 pods: start, memory, idle usage, stop. One run yields all numbers.

use anyhow::{Context, Result};
use rubelet_testbed::{clock, proc, wait};

use super::super::hundred_pods::{IDLE, PODS, SETTLE, stop_all, summary_ms, until_ready};
use super::super::report::Results;
use super::super::{Request, mib, progress};
use super::{agent_with, environment};

/// Measures the selected benchmarks of this group.
pub(in super::super) fn measure(request: &Request<'_>, results: &mut Results) -> Result<()> {
    let embedded = environment(request)?;
    let builder = agent_with(request, &embedded, PODS);
    progress("start 100 pods on the embedded runtime");
    let agent = builder.start()?;
    results.add("embedded_start_100_s", until_ready(&agent)?.as_secs_f64());
    let pid = agent.pid().context("the agent has exited")?;
    if request.includes("embedded_rss_mib_100") {
        wait::pass(SETTLE);
        let rss = proc::rss_bytes(pid).context("the agent has exited")?;
        results.add("embedded_rss_mib_100", mib(rss));
    }
    if request.includes("embedded_cpu_idle_pct_100") {
        progress("60 s of nothing");
        wait::pass(SETTLE);
        let cpu = || proc::cpu_time(pid).context("the agent has exited");
        let (start, before) = (clock::now(), cpu()?);
        wait::pass(IDLE);
        let used = cpu()? - before;
        let percent = used.as_secs_f64() / start.elapsed().as_secs_f64() * 100.0;
        results.add("embedded_cpu_idle_pct_100", percent);
    }
    if request.includes("embedded_summary_ms_100") {
        results.add(
            "embedded_summary_ms_100",
            summary_ms(|path| agent.get(path))?,
        );
    }
    if request.includes("embedded_stop_100_s") {
        let took = stop_all(&agent, &embedded.truth()?)?;
        results.add("embedded_stop_100_s", took.as_secs_f64());
    }
    drop(agent);
    embedded.remove()
}
