//! Many pods that a cluster starts and deletes at once: what that costs in requests and in time, with
//! the client's default rate limit.

#[path = "../examples/churn/node.rs"]
mod node;

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use rubelet_kube::ClientOptions;
use rubelet_node_state::clock::Clock;
use rubelet_sim::{Behavior, Sim};
use serde_json::{Value, json};
use sim_api::{SimApi, SimApiConfig};
use tokio::time::{Instant, sleep, timeout};

use node::{Disk, NODE, join};

const PODS: usize = 90;

/// What calls of a runtime take on a machine where many pods end at once.
const LATENCIES: [(&str, u64); 6] = [
    ("RunPodSandbox", 100),
    ("StopContainer", 30),
    ("StopPodSandbox", 80),
    ("RemoveContainer", 30),
    ("RemovePodSandbox", 60),
    ("ContainerStatus", 2),
];

fn pod(number: usize) -> Value {
    json!({
        "metadata": { "name": format!("pod-{number}"), "namespace": "default" },
        "spec": {
            "nodeName": NODE,
            "terminationGracePeriodSeconds": 1,
            "containers": [{"name": "main", "image": "app:1", "imagePullPolicy": "IfNotPresent"}],
        },
    })
}

fn is_ready(pod: &Value) -> bool {
    let conditions = pod["status"]["conditions"].as_array();
    let mut conditions = conditions.into_iter().flatten();
    conditions.any(|one| one["type"] == "Ready" && one["status"] == "True")
}

/// Waits for a state of the API server's pods.
async fn until(api: &SimApi, what: &str, is: impl Fn(&[Value]) -> bool) -> Duration {
    let start = Instant::now();
    let waited = timeout(Duration::from_secs(120), async {
        while !is(&api.list("pods")) {
            sleep(Duration::from_millis(10)).await;
        }
    });
    assert!(waited.await.is_ok(), "{what}: {:#?}", api.request_counts());
    start.elapsed()
}

#[tokio::test(start_paused = true)]
async fn ninety_pods_that_are_deleted_at_once_are_gone_within_six_seconds() {
    let start = Timestamp::from_second(1_800_000_000).expect("a time");
    let config = SimApiConfig {
        start: Some(start),
        scheduler: false,
        ..SimApiConfig::default()
    };
    let api = Arc::new(SimApi::start(config).await.expect("a server"));
    let sim = Sim::new();
    sim.add_image("app:1");
    sim.on_image("app:1", Behavior::runs().ignoring_term());
    for (call, millis) in LATENCIES {
        sim.set_latency_of(call, Duration::from_millis(millis));
    }
    let disk = Disk::new().expect("a directory");
    let clock = Clock::following_tokio(start);
    let agent = join(&api, &sim, &disk, clock, ClientOptions::default().qps).expect("an agent");
    for number in 0..PODS {
        api.create("pods", &pod(number)).expect("a pod");
    }
    until(&api, "all are ready", |pods| pods.iter().all(is_ready)).await;
    // The burst is there again.
    sleep(Duration::from_secs(10)).await;

    api.forget_requests();
    for number in 0..PODS {
        let name = format!("pod-{number}");
        api.delete("pods", "default", &name, None).expect("a pod");
    }
    let took = until(&api, "all are gone", <[Value]>::is_empty).await;
    println!("{took:?} {:#?}", api.request_counts());
    agent.stop().await;
    // Two seconds of it are the grace: no container gets less, and these ignore SIGTERM.
    assert!(took <= Duration::from_secs(6), "{took:?}");
    let violations: Vec<_> = api.violations().iter().map(ToString::to_string).collect();
    assert_eq!(violations, [""; 0]);
}
