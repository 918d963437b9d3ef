//! How many pods a second come, get ready and go: a model API server and a model runtime, whose answers
//! take no time of their own, and the whole agent between them. Prints pods per second.
//!
//! The client's rate limit is off: with `kubeAPIQPS: 50` it alone would decide.

#[path = "churn/node.rs"]
mod node;

use std::{
    io::{self, Write},
    sync::Arc,
    time::Duration,
};

use rubelet_node_state::clock::Clock;
use rubelet_sim::Sim;
use serde_json::{Value, json};
use sim_api::{SimApi, SimApiConfig};
use tokio::time::Instant;

use node::{Disk, NODE, join};

/// How many pods in all, after some that warm everything up.
const PODS: usize = 2000;
const WARM_UP: usize = 200;
/// How many at the same time.
const AT_ONCE: usize = 100;
/// How often the server's pods are read.
const LOOK_EVERY: Duration = Duration::from_millis(2);

type ChurnError = Box<dyn std::error::Error>;

#[tokio::main(worker_threads = 2)]
async fn main() -> Result<(), ChurnError> {
    let api = Arc::new(SimApi::start(SimApiConfig::default()).await?);
    let sim = Sim::new();
    sim.add_image("app:1");
    let disk = Disk::new()?;
    let agent = join(&api, &sim, &disk, Clock::system(), 0.0)?;
    churn(&api, WARM_UP).await?;
    let start = Instant::now();
    churn(&api, PODS).await?;
    let took = start.elapsed().as_secs_f64();
    agent.stop().await;
    let violations = api.violations();
    if !violations.is_empty() {
        return Err(format!("the node did what no node may: {violations:#?}").into());
    }
    writeln!(io::stdout(), "{:.1}", f64::from(PODS as u32) / took)?;
    Ok(())
}

/// Lets so many pods come and go.
async fn churn(api: &SimApi, pods: usize) -> Result<(), ChurnError> {
    let (mut created, mut there) = (0, 0);
    while created < pods || there > 0 {
        while created < pods && there < AT_ONCE {
            api.create("pods", &pod())?;
            created += 1;
            there += 1;
        }
        tokio::time::sleep(LOOK_EVERY).await;
        let found = api.list("pods");
        there = found.len();
        for pod in found {
            let metadata = &pod["metadata"];
            if is_ready(&pod) && metadata["deletionTimestamp"].is_null() {
                let name = metadata["name"].as_str().unwrap_or_default();
                api.delete("pods", "default", name, Some(1))?;
            }
        }
    }
    Ok(())
}

fn pod() -> Value {
    json!({
        "metadata": { "generateName": "pod-", "namespace": "default" },
        "spec": {
            "nodeName": NODE,
            "containers": [{
                "name": "main",
                "image": "app:1",
                "imagePullPolicy": "IfNotPresent",
            }],
        },
    })
}

fn is_ready(pod: &Value) -> bool {
    let conditions = pod["status"]["conditions"].as_array();
    let mut conditions = conditions.into_iter().flatten();
    conditions.any(|one| one["type"] == "Ready" && one["status"] == "True")
}
