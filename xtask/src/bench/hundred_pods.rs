//! An agent with 100 pods from a directory: start, idle, recovery, stop. One run yields all
//! numbers.

mod peer;
mod statistics;

use std::{net::Ipv4Addr, time::Duration};

use anyhow::{Context, Result};
use rubelet_testbed::agent::{AgentBuilder, free_port};
use rubelet_testbed::containerd::{HostPorts, Line};
use rubelet_testbed::{Agent, Containerd, CriTruth, clock, images, proc, wait};

pub(super) use self::statistics::summary_ms;
use self::statistics::{cadvisor_ms, scraped_percent};
use super::report::Results;
use super::{Request, mib, progress, scrape};

pub(super) const PODS: usize = 100;
/// Timeout of each step, enough for a slow machine.
const TIMEOUT: Duration = Duration::from_secs(300);
/// Idle time before memory and CPU time are measured.
pub(super) const SETTLE: Duration = Duration::from_secs(10);
/// The span over which idle CPU time is measured.
pub(super) const IDLE: Duration = Duration::from_secs(60);
/// When memory is measured again, after the last pod was ready: by then the agent has run its
/// periodic work once.
const MINUTE: Duration = Duration::from_secs(60);
/// Poll interval of the runtime: long enough not to slow it down.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// Number of times that the agent is killed; the result is the median.
const ADOPTIONS: usize = 5;
/// The benchmarks that need [`IDLE`] to pass.
const IDLE_NAMES: [&str; 3] = [
    "cpu_idle_pct_100",
    "runtime_cpu_idle_pct_100",
    "idle_rpcs_per_min_100",
];

/// The benchmarks of memory; all but the first two need [`MINUTE`] to pass.
const MEMORY_NAMES: [&str; 4] = [
    "rss_peak_mib_100",
    "rss_mib_100",
    "rss_mib_100_1min",
    "pss_mib_100",
];

/// Starts an agent with 100 pods in its directory, on a runtime of their own. Does not wait.
pub(super) fn start(request: &Request<'_>) -> Result<(Containerd, Agent)> {
    start_with(request, |builder| builder)
}

fn start_with(
    request: &Request<'_>,
    configure: impl FnOnce(AgentBuilder) -> AgentBuilder,
) -> Result<(Containerd, Agent)> {
    let containerd = Containerd::start_line(Line::V2, HostPorts::None)?;
    let mut builder = Agent::builder(&containerd).program(&request.program);
    for number in 0..PODS {
        builder = builder.manifest(file_name(number), manifest(number));
    }
    progress("start 100 pods");
    let agent = configure(builder).start()?;
    Ok((containerd, agent))
}

/// Measures the selected benchmarks of this group.
pub(super) fn measure(request: &Request<'_>, results: &mut Results) -> Result<()> {
    let port = free_port(Ipv4Addr::LOCALHOST.into())?;
    let (containerd, mut agent) = start_with(request, |builder| {
        builder
            .config("readOnlyPort", port)
            .flag("--housekeeping-interval=1s")
    })?;
    results.add("start_100_s", until_ready(&agent)?.as_secs_f64());
    if MEMORY_NAMES.iter().any(|name| request.includes(name)) {
        memory(pid(&agent)?, results)?;
    }
    if IDLE_NAMES.iter().any(|name| request.includes(name)) {
        progress("60 s of nothing");
        wait::pass(SETTLE);
        let runtime = containerd.pid().context("containerd has exited")?;
        let before = scrape::metrics(&agent)?;
        let [own, runtime] = idle_percent([pid(&agent)?, runtime])?;
        let after = scrape::metrics(&agent)?;
        results.add("cpu_idle_pct_100", own);
        results.add("runtime_cpu_idle_pct_100", runtime);
        let calls = scrape::growth(&before, &after, "kubelet_runtime_operations_total")?;
        results.add("idle_rpcs_per_min_100", calls);
    }
    if request.includes("summary_ms_100") {
        results.add("summary_ms_100", summary_ms(|path| agent.get(path))?);
    }
    if request.includes("cadvisor_ms_100") {
        results.add("cadvisor_ms_100", cadvisor_ms(port)?);
    }
    if request.includes("stats_cpu_pct_100") {
        results.add("stats_cpu_pct_100", scraped_percent(pid(&agent)?, port)?);
    }
    if request.includes("runtime_cpu_idle_alone_pct_100") {
        progress("60 s of nothing without the agent");
        agent.terminate()?;
        wait::pass(SETTLE);
        let runtime = containerd.pid().context("containerd has exited")?;
        let [alone] = idle_percent([runtime])?;
        results.add("runtime_cpu_idle_alone_pct_100", alone);
        agent.start()?;
        until_ready(&agent)?;
    }
    if request.includes("adopt_100_ms") {
        progress("kill the agent and let it adopt 100 pods");
        let mut times = Vec::new();
        for _ in 0..ADOPTIONS {
            agent.kill9()?;
            agent.start()?;
            times.push(until_ready(&agent)?);
        }
        times.sort();
        results.add("adopt_100_ms", times[ADOPTIONS / 2].as_secs_f64() * 1000.0);
    }
    if request.includes("stop_100_s") {
        let took = stop_all(&agent, &containerd.truth()?)?;
        results.add("stop_100_s", took.as_secs_f64());
    }
    drop(agent);
    containerd.remove()?;
    peer::measure(request)
}

/// The memory of the agent right after the start of all pods.
fn memory(pid: u32, results: &mut Results) -> Result<()> {
    const ENDED: &str = "the agent has exited";
    progress("memory with 100 pods, for a minute");
    let peak = proc::peak_rss_bytes(pid).context(ENDED)?;
    results.add("rss_peak_mib_100", mib(peak));
    wait::pass(SETTLE);
    let rss = proc::rss_bytes(pid).context(ENDED)?;
    results.add("rss_mib_100", mib(rss));
    wait::pass(MINUTE.saturating_sub(SETTLE));
    let rss = proc::rss_bytes(pid).context(ENDED)?;
    results.add("rss_mib_100_1min", mib(rss));
    let pss = proc::pss_bytes(pid).context(ENDED)?;
    results.add("pss_mib_100", mib(pss));
    Ok(())
}

/// The time from the agent's start until it reported to systemd that all pods are ready.
pub(super) fn until_ready(agent: &Agent) -> Result<Duration> {
    until_pods_ready(agent, PODS)
}

/// Like [`until_ready`], with this many pods.
pub(super) fn until_pods_ready(agent: &Agent, pods: usize) -> Result<Duration> {
    let all_ready = format!("{pods}/{pods} pods ready");
    let state = agent.wait_notification("all pods are ready", TIMEOUT, |state| {
        state
            .status()
            .is_some_and(|status| status.starts_with(&all_ready))
    })?;
    let start = agent.started_at().context("the agent was not started")?;
    Ok(state.at.duration_since(start))
}

/// Removes all manifests; returns the time until no process of the pods runs.
pub(super) fn stop_all(agent: &Agent, truth: &CriTruth) -> Result<Duration> {
    let stopped = until_stopped(truth, |name| agent.remove_manifest(name));
    stopped.with_context(|| agent.circumstances())
}

fn until_stopped(truth: &CriTruth, remove: impl Fn(&str) -> Result<()>) -> Result<Duration> {
    progress("stop 100 pods");
    let start = clock::now();
    for number in 0..PODS {
        remove(&file_name(number))?;
    }
    wait::until_every(POLL_INTERVAL, "nothing of the pods runs", TIMEOUT, || {
        let sandboxes = truth.sandboxes()?;
        Ok((!sandboxes.iter().any(|sandbox| sandbox.ready)).then_some(()))
    })?;
    Ok(start.elapsed())
}

/// Idle CPU usage of each process, in percent of one core.
fn idle_percent<const N: usize>(pids: [u32; N]) -> Result<[f64; N]> {
    let times = || -> Result<[Duration; N]> {
        let mut times = [Duration::ZERO; N];
        for (time, pid) in times.iter_mut().zip(pids) {
            *time = proc::cpu_time(pid).context("a measured process has exited")?;
        }
        Ok(times)
    };
    let start = clock::now();
    let before = times()?;
    wait::pass(IDLE);
    let after = times()?;
    let span = start.elapsed().as_secs_f64();
    Ok(std::array::from_fn(|index| {
        (after[index] - before[index]).as_secs_f64() / span * 100.0
    }))
}

fn pid(agent: &Agent) -> Result<u32> {
    agent.pid().context("the agent has exited")
}

pub(super) fn file_name(number: usize) -> String {
    format!("pod-{number:03}.yaml")
}

/// A pod with one container that waits, and exits on SIGTERM.
pub(super) fn manifest(number: usize) -> String {
    format!(
        "apiVersion: v1\nkind: Pod\nmetadata:\n  name: pod-{number:03}\nspec:\n  containers:\n  - \
         name: main\n    image: {}\n    imagePullPolicy: IfNotPresent\n",
        images::PAUSE
    )
}
