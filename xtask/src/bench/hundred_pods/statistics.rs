//! What statistics of 100 pods cost.

use std::{net::Ipv4Addr, time::Duration};

use anyhow::{Context, Result, ensure};
use rubelet_testbed::{
    clock,
    http::{self, Response},
    proc, wait,
};

use super::{IDLE, PODS, progress};

/// Number of answers; the result is the median.
const ANSWERS: usize = 9;
/// The usual interval of a metrics server.
const SCRAPES: Duration = Duration::from_secs(15);
const SUMMARY: &str = "/stats/summary";
const CADVISOR: &str = "/metrics/cadvisor";
/// What a metrics server reads.
const RESOURCE: &str = "/metrics/resource";
/// The age of statistics that are shown again, and a little.
const STATS_AGE: Duration = Duration::from_millis(1100);

/// The time of one `/stats/summary` of all pods, in milliseconds.
pub(in super::super) fn summary_ms(get: impl Fn(&str) -> Result<Response>) -> Result<f64> {
    statistics_ms(|| get(SUMMARY), SUMMARY, pods_in_summary)
}

/// The number of pods in a summary.
fn pods_in_summary(text: &str) -> Result<usize> {
    let summary: serde_json::Value = serde_json::from_str(text)?;
    Ok(summary["pods"].as_array().map_or(0, Vec::len))
}

/// The time of one `/metrics/cadvisor` of all pods, in milliseconds.
pub(super) fn cadvisor_ms(port: u16) -> Result<f64> {
    statistics_ms(|| get_port(port, CADVISOR), CADVISOR, pods_in_cadvisor)
}

/// The number of pods whose container is in the metrics of cAdvisor.
fn pods_in_cadvisor(text: &str) -> Result<usize> {
    let of_main = |line: &&str| {
        line.starts_with("container_memory_working_set_bytes{")
            && line.contains("container=\"main\"")
    };
    Ok(text.lines().filter(of_main).count())
}

/// Whether both have all pods.
pub(super) fn are_complete(port: u16) -> Result<bool> {
    let summary = get_port(port, SUMMARY)?.text();
    let cadvisor = get_port(port, CADVISOR)?.text();
    Ok(pods_in_summary(&summary)? == PODS && pods_in_cadvisor(&cadvisor)? == PODS)
}

/// The median time of one answer, in milliseconds. `pods` counts the pods in it.
fn statistics_ms(
    get: impl Fn() -> Result<Response>,
    path: &str,
    pods: impl Fn(&str) -> Result<usize>,
) -> Result<f64> {
    progress(&format!("{path} of 100 pods"));
    let mut times = Vec::new();
    for _ in 0..ANSWERS {
        // Younger numbers would not be read again.
        wait::pass(STATS_AGE);
        let start = clock::now();
        let answer = get()?;
        times.push(start.elapsed());
        ensure!(answer.status == 200, "{path} gave {}", answer.status);
        let pods = pods(&answer.text())?;
        ensure!(pods == PODS, "{path} has {pods} pods");
    }
    times.sort();
    Ok(times[ANSWERS / 2].as_secs_f64() * 1000.0)
}

/// CPU usage of the agent while its statistics are read as a metrics server reads them, in percent of one core.
pub(super) fn scraped_percent(pid: u32, port: u16) -> Result<f64> {
    progress("60 s with a metrics server");
    let cpu = || proc::cpu_time(pid).context("the agent has exited");
    let (start, before) = (clock::now(), cpu()?);
    while start.elapsed() < IDLE {
        let answer = get_port(port, RESOURCE)?;
        ensure!(answer.status == 200, "{RESOURCE} gave {}", answer.status);
        wait::pass(SCRAPES);
    }
    let used = cpu()? - before;
    Ok(used.as_secs_f64() / start.elapsed().as_secs_f64() * 100.0)
}

/// GET from the node's port.
pub(super) fn get_port(port: u16, path: &str) -> Result<Response> {
    http::get_tcp(&format!("{}:{port}", Ipv4Addr::LOCALHOST), path)
}
