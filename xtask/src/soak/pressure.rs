//! A node that runs out of memory, disk, inodes and process IDs in turn. Each time the pod that takes it must be
//! evicted, and nothing else may be lost.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail, ensure};
use rubelet_testbed::disk::SmallDisk;
use rubelet_testbed::manifest::{pod, waiting, with};
use rubelet_testbed::pressure::{DISK_INODES, DISK_KIB, Pressure};
use rubelet_testbed::runtime::Kind;
use rubelet_testbed::{Agent, Cluster, CriTruth, status, wait};
use serde_json::{Map, Value, json};

use super::kept::keep_logs;
use super::runtime::Runtime;

const NODE: &str = "worker";
/// Timeout of each step.
const TIMEOUT: Duration = Duration::from_secs(120);
/// A pod of the agent's directory, which no shortage may end.
const STATIC: &str = "static";

/// A node of a model API server with pods that use little.
struct PressedNode {
    agent: Agent,
    cluster: Cluster,
    truth: CriTruth,
    _disk: SmallDisk,
    runtime: Runtime,
    /// The identifiers of the containers of the pods that stay, by pod.
    staying: BTreeMap<String, Value>,
}

/// Runs so many shortages, from a new node to its removal; returns a line about it.
pub(super) fn run_seed(kind: Kind, program: &Path, seed: u64, rounds: u64) -> Result<String> {
    let mut node = PressedNode::start(kind, program)?;
    let result = node.run(seed, rounds).map_err(|error| {
        let report = format!("{error:#}\n{}", node.agent.circumstances());
        let files = [
            ("agent.log", node.agent.log_path()),
            ("runtime.log", node.runtime.log_path()),
        ];
        anyhow!("{error:#}\n  {}", keep_logs(seed, &files, &report))
    });
    let removed = node.remove();
    result?;
    removed?;
    Ok(format!(
        "{rounds} shortages, nothing that should stay was lost"
    ))
}

impl PressedNode {
    fn start(kind: Kind, program: &Path) -> Result<Self> {
        let runtime = Runtime::start(kind, program)?;
        let cluster = Cluster::start_model()?;
        let mut thresholds = Map::new();
        for pressure in Pressure::ALL {
            let threshold = pressure.threshold()?;
            thresholds.insert(pressure.signal().to_owned(), threshold.into());
        }
        let builder = Agent::builder(&runtime)
            .program(program)
            .config("evictionHard", thresholds)
            .config("evictionPressureTransitionPeriod", "5s")
            .manifest(
                format!("{STATIC}.json"),
                modest(STATIC, &json!({})).to_string(),
            );
        let mut agent = cluster.join(builder, NODE)?.prepare()?;
        let root = agent.root_dir();
        std::fs::create_dir_all(&root)?;
        let disk = SmallDisk::mount_with_inodes(&root, DISK_KIB, DISK_INODES)?;
        agent.start()?;
        let mut node = Self {
            agent,
            truth: runtime.truth()?,
            cluster,
            _disk: disk,
            runtime,
            staying: BTreeMap::new(),
        };
        node.wait(("nodes", "", NODE), "the node is ready", status::is_ready)?;
        node.start_staying()?;
        Ok(node)
    }

    /// Starts a pod of each quality of service, and a critical one.
    fn start_staying(&mut self) -> Result<()> {
        let resources = |resources: Value| json!({ "resources": resources });
        let little = json!({ "cpu": "10m", "memory": "64Mi" });
        let critical = json!({ "priorityClassName": "system-node-critical" });
        let mut pods = vec![
            modest("besteffort", &json!({})),
            modest("burstable", &resources(json!({ "requests": little }))),
            modest("guaranteed", &resources(json!({ "limits": little }))),
            modest("critical", &json!({})),
        ];
        pods[3] = with(pods[3].take(), &json!({ "spec": critical }));
        for pod in pods {
            self.create(pod)?;
        }
        let mirror = format!("{STATIC}-{NODE}");
        for name in ["besteffort", "burstable", "guaranteed", "critical", &mirror] {
            let place = ("pods", "default", name);
            let seen = self.wait(place, "the pod is ready", status::is_ready)?;
            self.staying.insert(name.to_owned(), identity(&seen));
        }
        Ok(())
    }

    fn run(&mut self, seed: u64, rounds: u64) -> Result<()> {
        for round in 0..rounds {
            let turn = (seed + round) % Pressure::ALL.len() as u64;
            let pressure = Pressure::ALL[usize::try_from(turn)?];
            let what = || format!("round {round}, {pressure:?}");
            self.starve(pressure, &format!("greedy-{round}"))
                .with_context(what)?;
        }
        Ok(())
    }

    /// Lets a pod take all of it, until it is evicted and the node is relieved.
    fn starve(&mut self, pressure: Pressure, name: &str) -> Result<()> {
        self.create(pressure.greedy(name))?;
        let place = ("pods", "default", name);
        let ended = self.wait(place, "the greedy pod is evicted", |pod| {
            pod["status"]["phase"] == "Failed"
        })?;
        let status = &ended["status"];
        let begin = format!("The node was low on resource: {}.", pressure.resource());
        let message = status["message"].as_str().unwrap_or_default();
        ensure!(
            status["reason"] == "Evicted" && message.starts_with(&begin),
            "it ended otherwise: {status}"
        );
        let kind = pressure.condition();
        self.wait(("nodes", "", NODE), "the node is relieved", |node| {
            status::condition(node, kind)["status"] == "False"
        })?;
        self.check_staying()?;
        self.cluster.api().delete("pods", "default", name, None)?;
        let gone = |seen: Option<&Value>| seen.is_none();
        self.cluster.api().wait_for(place, TIMEOUT, gone)?;
        let left = || Ok((self.truth.sandboxes()?.len() == self.staying.len()).then_some(()));
        wait::until("nothing of the greedy pod is left", TIMEOUT, left)?;
        self.cluster.no_violations()
    }

    /// Nothing of the other pods was started again.
    fn check_staying(&mut self) -> Result<()> {
        if let Some(status) = self.agent.exit_status()? {
            bail!("the agent exited by itself ({status})");
        }
        for (name, before) in &self.staying {
            let seen = self.cluster.api().get("pods", "default", name)?;
            let seen = seen.with_context(|| format!("{name} is gone"))?;
            let now = identity(&seen);
            ensure!(now == *before, "{name} was {before}, and is {now}");
        }
        Ok(())
    }

    fn create(&self, pod: Value) -> Result<()> {
        let bound = json!({ "metadata": { "namespace": "default" }, "spec": { "nodeName": NODE } });
        self.cluster.api().create("pods", &with(pod, &bound))?;
        Ok(())
    }

    fn wait(
        &self,
        object: (&str, &str, &str),
        what: &str,
        wanted: impl Fn(&Value) -> bool,
    ) -> Result<Value> {
        let wanted = |seen: Option<&Value>| seen.is_some_and(&wanted);
        let seen = self.cluster.api().wait_for(object, TIMEOUT, wanted);
        seen.with_context(|| what.to_owned())?
            .with_context(|| what.to_owned())
    }

    /// Removes everything; the error lists failures.
    fn remove(self) -> Result<()> {
        let Self {
            agent,
            cluster,
            truth,
            _disk,
            runtime,
            staying: _,
        } = self;
        drop(agent);
        drop(cluster);
        drop(truth);
        drop(_disk);
        runtime.remove()
    }
}

/// A pod that waits.
fn modest(name: &str, container: &Value) -> Value {
    pod(
        name,
        &json!({ "containers": [with(waiting("main"), container)] }),
    )
}

/// What stays the same while a pod lives and its container does.
fn identity(pod: &Value) -> Value {
    json!({
        "phase": pod["status"]["phase"],
        "restarts": status::restarts(pod, "main"),
        "container": status::id(pod, "main"),
    })
}
