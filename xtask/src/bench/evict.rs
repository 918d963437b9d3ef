//! Eviction for a real lack of memory: the time from the crossing of the threshold until the pod that takes the memory
//! is told to end.

use std::fs;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use rubelet_testbed::containerd::HostPorts;
use rubelet_testbed::memory::available_bytes;
use rubelet_testbed::{Agent, Cluster, Containerd, clock, images, wait};
use serde_json::{Value, json};

use super::report::Results;
use super::{Request, progress, quantile};

const NODE: &str = "bench";
const MIB: u64 = 1 << 20;
/// Memory that the machine must have.
const NEEDED: u64 = 4096 * MIB;
/// What the pod can take before the threshold is crossed.
const ROOM: u64 = 768 * MIB;
/// Evictions; the result is their median.
const ROUNDS: usize = 5;
const TIMEOUT: Duration = Duration::from_secs(120);
/// Interval of the measurements; it is part of the result's error.
const EVERY: Duration = Duration::from_millis(2);
/// Takes 16 MiB about every 20 ms, 1.5 GiB at most. The first process is told to end, and says so.
const GREEDY: &str = "trap 'echo told > /said/NAME; exit 0' TERM; \
                      (i=0; while [ $i -lt 96 ]; do dd if=/dev/zero of=/memory/$i bs=1M count=16 2>/dev/null; \
                      i=$((i+1)); sleep 0.02; done; sleep 1000) & wait; wait";

/// Measures `evict_ms`.
pub(super) fn measure(request: &Request<'_>, results: &mut Results) -> Result<()> {
    let available = available_bytes()?;
    ensure!(
        available > NEEDED,
        "{} MiB of memory are available, {} are needed",
        available / MIB,
        NEEDED / MIB
    );
    let threshold = available - ROOM;
    let containerd = Containerd::start_with(HostPorts::None)?;
    let cluster = Cluster::start_model()?;
    let hard = json!({ "memory.available": format!("{}Mi", threshold / MIB) });
    let builder = Agent::builder(&containerd)
        .program(&request.program)
        .config("evictionHard", hard)
        .config("evictionPressureTransitionPeriod", "1s");
    let said = builder.scratch().subdir("said")?;
    let agent = cluster.join(builder, NODE)?.start()?;
    let mut times = Vec::new();
    for round in 0..ROUNDS {
        progress("a pod takes the memory of the node");
        let name = format!("greedy-{round}");
        let wait = |what: &str, wanted: &dyn Fn() -> Result<bool>| {
            let waited = wait::until_every(EVERY, what, TIMEOUT, || Ok(wanted()?.then_some(())));
            waited.with_context(|| agent.circumstances())
        };
        let of_pod = || cluster.api().get("pods", "default", &name);
        cluster
            .api()
            .create("pods", &pod(&name, &said.to_string_lossy()))?;
        wait("the threshold is crossed", &|| {
            Ok(available_bytes()? < threshold)
        })?;
        let crossed = clock::now();
        wait("the pod is told to end", &|| Ok(said.join(&name).exists()))?;
        times.push(crossed.elapsed().as_secs_f64() * 1000.0);
        wait("the pod has ended", &|| {
            Ok(of_pod()?.is_some_and(|pod| pod["status"]["phase"] == "Failed"))
        })?;
        let reason = of_pod()?.map(|pod| pod["status"]["reason"].clone());
        ensure!(
            reason == Some(json!("Evicted")),
            "the pod ended for {reason:?}"
        );
        cluster.api().delete("pods", "default", &name, None)?;
        wait("the pod and its memory are gone", &|| {
            Ok(of_pod()?.is_none() && available_bytes()? > threshold + ROOM / 2)
        })?;
        fs::remove_file(said.join(&name))?;
    }
    times.sort_by(f64::total_cmp);
    results.add("evict_ms", quantile(&times, 0.50));
    drop(agent);
    containerd.remove()
}

/// A pod that takes memory. It requests some, as one without requests is not admitted right after a lack of memory.
fn pod(name: &str, said: &str) -> Value {
    json!({
        "metadata": { "name": name, "namespace": "default" },
        "spec": {
            "nodeName": NODE,
            "volumes": [
                { "name": "memory", "emptyDir": { "medium": "Memory" } },
                { "name": "said", "hostPath": { "path": said } },
            ],
            "containers": [{
                "name": "main",
                "image": images::BUSYBOX_IMAGE,
                "imagePullPolicy": "IfNotPresent",
                "command": ["sh", "-c", GREEDY.replace("NAME", name)],
                "resources": { "requests": { "memory": "16Mi" } },
                "volumeMounts": [
                    { "name": "memory", "mountPath": "/memory" },
                    { "name": "said", "mountPath": "/said" },
                ],
            }],
        },
    })
}
