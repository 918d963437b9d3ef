//! An agent that is a node of a model cluster, with 100 pods: memory, processor time and requests while
//! nothing happens, and how soon a change of a pod is on its way to the API server.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use rubelet_testbed::containerd::{HostPorts, Line};
use rubelet_testbed::status::is_ready;
use rubelet_testbed::{Agent, Cluster, Containerd, clock, images, proc, wait};
use serde_json::{Value, json};

use super::hundred_pods::PODS;
use super::report::Results;
use super::{Request, mib, progress, scrape};

const NODE: &str = "bench";
const TIMEOUT: Duration = Duration::from_secs(300);
/// How long the agent is left alone before anything is measured.
const SETTLE: Duration = Duration::from_secs(15);
/// The span over which idleness is measured.
const IDLE: Duration = Duration::from_secs(60);
/// Pause after each kill: what follows from one is over before the next.
const PAUSE: Duration = Duration::from_millis(300);
/// The time from the change of a status on the agent's board until its patch is sent.
const LAG: &str = "rubelet_pod_status_lag_seconds";

/// Measures what the request wants of this group.
pub(super) fn measure(request: &Request<'_>, results: &mut Results) -> Result<()> {
    let containerd = Containerd::start_line(Line::V2, HostPorts::None)?;
    let cluster = Cluster::start()?;
    let builder = Agent::builder(&containerd).program(&request.program);
    let agent = cluster.join(builder, NODE)?.start()?;
    progress("100 pods of a cluster");
    for number in 0..PODS {
        cluster.api().create("pods", &pod(number))?;
    }
    until(&agent, &cluster, "all pods are ready", is_ready)?;
    wait::pass(SETTLE);
    let pid = agent.pid().context("the agent has ended")?;
    let rss = proc::rss_bytes(pid).context("the agent has ended")?;
    results.add("joined_rss_mib_100", mib(rss));
    if request.wants("joined_cpu_idle_pct_100") || request.wants("api_rpcs_per_min_idle_100") {
        progress("60 s of nothing");
        let start = clock::now();
        cluster.api().forget_requests();
        let before = proc::cpu_time(pid).context("the agent has ended")?;
        wait::pass(IDLE);
        let after = proc::cpu_time(pid).context("the agent has ended")?;
        let span = start.elapsed().as_secs_f64();
        let of_node = |user: &str| user == format!("system:node:{NODE}");
        let requests = cluster.api().count(|request| of_node(&request.user));
        let percent = (after - before).as_secs_f64() / span * 100.0;
        results.add("joined_cpu_idle_pct_100", percent);
        #[expect(clippy::cast_precision_loss, reason = "there are few requests")]
        results.add("api_rpcs_per_min_idle_100", requests as f64);
    }
    if request.wants("status_lag_ms_p50") || request.wants("status_lag_ms_p99") {
        progress("kill one container after the other");
        let truth = containerd.truth()?;
        let before = scrape::metrics(&agent)?;
        for container in truth.containers()? {
            proc::kill9(truth.pid(&container.id)?)?;
            wait::pass(PAUSE);
        }
        until(&agent, &cluster, "all containers were restarted", |pod| {
            let count = &pod["status"]["containerStatuses"][0]["restartCount"];
            is_ready(pod) && count.as_u64() == Some(1)
        })?;
        let after = scrape::metrics(&agent)?;
        let lag = |share| scrape::quantile(&before, &after, LAG, share);
        results.add("status_lag_ms_p50", lag(0.50)? * 1000.0);
        results.add("status_lag_ms_p99", lag(0.99)? * 1000.0);
    }
    cluster.no_violations()?;
    drop(agent);
    containerd.remove()
}

/// Waits until all pods of the cluster are as wanted.
fn until(
    agent: &Agent,
    cluster: &Cluster,
    what: &str,
    wanted: impl Fn(&Value) -> bool,
) -> Result<()> {
    let every = Duration::from_millis(100);
    let waited = wait::until_every(every, what, TIMEOUT, || {
        let pods = cluster.api().list("pods");
        ensure!(pods.len() == PODS, "{} pods are there", pods.len());
        Ok(pods.iter().all(&wanted).then_some(()))
    });
    waited.with_context(|| agent.circumstances())
}

/// A pod of one container that waits, and ends at SIGTERM.
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
