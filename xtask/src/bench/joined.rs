//! An agent on a node of a model cluster, with 100 pods: memory, CPU time and requests while idle,
//! and the latency of status changes to the API server.

use std::time::{Duration, SystemTime};

use anyhow::{Context, Result, ensure};
use rubelet_testbed::containerd::{HostPorts, Line};
use rubelet_testbed::status::is_ready;
use rubelet_testbed::{Agent, Cluster, Containerd, clock, images, proc, wait};
use serde_json::{Value, json};

use super::hundred_pods::PODS;
use super::report::Results;
use super::{Request, mib, progress, quantile};

const NODE: &str = "bench";
const TIMEOUT: Duration = Duration::from_secs(300);
/// Idle time before the measurement.
const SETTLE: Duration = Duration::from_secs(15);
/// The span over which idle usage is measured.
const IDLE: Duration = Duration::from_secs(60);
/// Pause after each kill, longer than its consequences last.
const PAUSE: Duration = Duration::from_millis(300);

/// Measures the selected benchmarks of this group.
pub(super) fn measure(request: &Request<'_>, results: &mut Results) -> Result<()> {
    let containerd = Containerd::start_line(Line::V2, HostPorts::None)?;
    let cluster = Cluster::start_model()?;
    let builder = Agent::builder(&containerd).program(&request.program);
    let agent = cluster.join(builder, NODE)?.start()?;
    progress("100 pods of a cluster");
    for number in 0..PODS {
        cluster.api().create("pods", &pod(number))?;
    }
    until(&agent, &cluster, "all pods are ready", is_ready)?;
    wait::pass(SETTLE);
    let pid = agent.pid().context("the agent has exited")?;
    let rss = proc::rss_bytes(pid).context("the agent has exited")?;
    results.add("joined_rss_mib_100", mib(rss));
    if request.includes("joined_cpu_idle_pct_100") || request.includes("api_rpcs_per_min_idle_100")
    {
        progress("60 s of nothing");
        let start = clock::now();
        cluster.api().model()?.forget_requests();
        let before = proc::cpu_time(pid).context("the agent has exited")?;
        wait::pass(IDLE);
        let after = proc::cpu_time(pid).context("the agent has exited")?;
        let span = start.elapsed().as_secs_f64();
        let of_node = |user: &str| user == format!("system:node:{NODE}");
        let model = cluster.api().model()?;
        let requests = model.count(|request| of_node(&request.user));
        let percent = (after - before).as_secs_f64() / span * 100.0;
        results.add("joined_cpu_idle_pct_100", percent);
        #[expect(clippy::cast_precision_loss, reason = "there are few requests")]
        results.add("api_rpcs_per_min_idle_100", requests as f64);
    }
    if request.includes("status_lag_ms_p50") || request.includes("status_lag_ms_p99") {
        progress("kill one container after the other");
        let truth = containerd.truth()?;
        cluster.api().model()?.forget_requests();
        let mut kills = Vec::new();
        for container in truth.containers()? {
            kills.push((container.pod, proc::kill9(truth.pid(&container.id)?)?));
            wait::pass(PAUSE);
        }
        until(&agent, &cluster, "all containers were restarted", |pod| {
            let count = &pod["status"]["containerStatuses"][0]["restartCount"];
            is_ready(pod) && count.as_u64() == Some(1)
        })?;
        let lags = lags(&cluster, &kills)?;
        results.add("status_lag_ms_p50", quantile(&lags, 0.50));
        results.add("status_lag_ms_p99", quantile(&lags, 0.99));
    }
    cluster.no_violations()?;
    drop(agent);
    containerd.remove()
}

/// The time from each kill of a pod's process until the API server has received the next patch of
/// its status; in milliseconds, sorted. The model server runs in this process, so one clock serves
/// both.
fn lags(cluster: &Cluster, kills: &[(String, SystemTime)]) -> Result<Vec<f64>> {
    let requests = cluster.api().model()?.requests();
    let mut lags = Vec::new();
    for (pod, killed_at) in kills {
        let patched = requests
            .iter()
            .filter(|one| one.verb == "patch" && one.resource == "pods/status" && one.name == *pod);
        let taken = patched.filter(|one| (200..300).contains(&one.code));
        let after = taken.filter_map(|one| {
            let at = SystemTime::from(one.time);
            at.duration_since(*killed_at).ok()
        });
        let lag = after.min();
        let lag = lag.with_context(|| format!("no status of {pod} came after its kill"))?;
        lags.push(lag.as_secs_f64() * 1000.0);
    }
    lags.sort_by(f64::total_cmp);
    Ok(lags)
}

/// Waits until all pods of the cluster satisfy the condition.
fn until(
    agent: &Agent,
    cluster: &Cluster,
    what: &str,
    wanted: impl Fn(&Value) -> bool,
) -> Result<()> {
    let every = Duration::from_millis(100);
    let waited = wait::until_every(every, what, TIMEOUT, || {
        let pods = cluster.api().model()?.list("pods");
        ensure!(pods.len() == PODS, "{} pods are there", pods.len());
        Ok(pods.iter().all(&wanted).then_some(()))
    });
    waited.with_context(|| agent.circumstances())
}

/// A pod with one container that waits, and exits on SIGTERM.
fn pod(number: usize) -> Value {
    json!({
        "metadata": { "name": format!("pod-{number:03}"), "namespace": "default" },
        "spec": {
            "nodeName": NODE,
            "containers": [{
                "name": "main",
                "image": images::PAUSE,
                "imagePullPolicy": "IfNotPresent",
            }],
        },
    })
}
