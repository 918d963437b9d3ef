//! A joined node, and queries about it.

use std::time::Duration;

use rubelet_cri::{RuntimeService as _, v1};
use rubelet_testbed::agent::AgentBuilder;
use rubelet_testbed::{Agent, Cluster, CriTruth, TestRuntime, status, wait};
use serde_json::{Value, json};

use crate::outside::kubectl::Kubectl;

/// Timeout of each wait. The agent waits two minutes for the head of a watch, which a faulty API server never sends.
const TIMEOUT: Duration = Duration::from_secs(240);

/// The image that every test has.
pub(crate) const IMAGE: &str = "localhost/rubelet/busybox:1";

/// A cluster of one node.
pub(crate) struct Joined {
    pub(crate) kubectl: Kubectl,
    pub(crate) agent: Agent,
    pub(crate) truth: CriTruth,
    pub(crate) cluster: Cluster,
    pub(crate) runtime: TestRuntime,
}

impl Joined {
    /// Starts everything and waits until the node is ready.
    pub(crate) fn start(name: &str) -> Self {
        Self::start_with(name, |builder| builder)
    }

    /// The same with the model API server, whatever the environment selects.
    pub(crate) fn start_on_model(name: &str) -> Self {
        Self::start_on_model_with(name, |builder| builder)
    }

    /// The same with an additional configuration of the agent.
    pub(crate) fn start_on_model_with(
        name: &str,
        configure: impl FnOnce(AgentBuilder) -> AgentBuilder,
    ) -> Self {
        Self::of(Cluster::start_model().unwrap(), name, configure, |_| ())
    }

    /// The same with an additional configuration of the agent.
    pub(crate) fn start_with(
        name: &str,
        configure: impl FnOnce(AgentBuilder) -> AgentBuilder,
    ) -> Self {
        Self::start_prepared(name, configure, |_| ())
    }

    /// The same with something to do between the creation of the agent's directories and its start.
    pub(crate) fn start_prepared(
        name: &str,
        configure: impl FnOnce(AgentBuilder) -> AgentBuilder,
        prepare: impl FnOnce(&Agent),
    ) -> Self {
        Self::of(Cluster::start().unwrap(), name, configure, prepare)
    }

    fn of(
        cluster: Cluster,
        name: &str,
        configure: impl FnOnce(AgentBuilder) -> AgentBuilder,
        prepare: impl FnOnce(&Agent),
    ) -> Self {
        let runtime = TestRuntime::start().unwrap();
        let builder = cluster.join(Agent::builder(&runtime), name).unwrap();
        let mut agent = configure(builder).prepare().unwrap();
        prepare(&agent);
        agent.start().unwrap();
        let joined = Self {
            kubectl: Kubectl::of_cluster(&cluster),
            agent,
            truth: runtime.truth().unwrap(),
            cluster,
            runtime,
        };
        joined.wait_node_ready(name);
        joined
    }

    /// Waits until the node is ready.
    pub(crate) fn wait_node_ready(&self, name: &str) {
        self.wait_object(("nodes", "", name), "ready", |node| {
            condition(node, "Ready") == "True"
        });
    }

    /// Waits until an object meets a condition.
    pub(crate) fn wait_object(
        &self,
        object: (&str, &str, &str),
        what: &str,
        wanted: impl Fn(&Value) -> bool,
    ) -> Value {
        let wanted = |seen: Option<&Value>| seen.is_some_and(&wanted);
        let waited = self.cluster.api().wait_for(object, TIMEOUT, wanted);
        let seen = waited.unwrap_or_else(|error| panic!("{what}: {error}\n{}", self.log_end()));
        seen.unwrap()
    }

    /// Waits until a pod of the default namespace meets a condition.
    pub(crate) fn wait_pod(
        &self,
        name: &str,
        what: &str,
        wanted: impl Fn(&Value) -> bool,
    ) -> Value {
        self.wait_object(("pods", "default", name), what, wanted)
    }

    /// Waits until a pod is ready.
    pub(crate) fn wait_ready(&self, name: &str) -> Value {
        self.wait_pod(name, "ready", |pod| condition(pod, "Ready") == "True")
    }

    /// Waits until the pod's first container waits for this reason; returns the message.
    pub(crate) fn waits_for(&self, name: &str, reason: &str) -> String {
        let waiting = "/status/containerStatuses/0/state/waiting";
        let seen = self.wait_pod(name, &format!("waits with {reason}"), |pod| {
            pod.pointer(waiting)
                .is_some_and(|found| found["reason"] == reason)
        });
        let message = &seen.pointer(waiting).unwrap()["message"];
        message.as_str().unwrap_or_default().to_owned()
    }

    /// Waits until an object is gone.
    pub(crate) fn wait_gone(&self, name: &str) {
        let gone = |seen: Option<&Value>| seen.is_none();
        let object = ("pods", "default", name);
        let waited = self.cluster.api().wait_for(object, TIMEOUT, gone);
        waited.unwrap_or_else(|error| panic!("{name} goes: {error}\n{}", self.log_end()));
    }

    /// Creates a pod of the default namespace.
    pub(crate) fn create(&self, pod: &Value) {
        self.cluster.api().create("pods", pod).unwrap();
    }

    /// Waits until the runtime has no pod any more.
    pub(crate) fn wait_empty(&self) {
        let empty = |_: &Agent| {
            let left = self.truth.sandboxes()?.len();
            Ok((left == 0).then_some(()))
        };
        self.agent
            .wait_for("the runtime is empty", TIMEOUT, empty)
            .unwrap();
    }

    /// Removes all sandboxes and containers, like a reboot. The agent must not be running.
    pub(crate) fn lose_all_sandboxes(&self) {
        let lose = |truth: &CriTruth| {
            for sandbox in truth.sandboxes().unwrap() {
                let pod_sandbox_id = sandbox.id;
                let stop = v1::StopPodSandboxRequest {
                    pod_sandbox_id: pod_sandbox_id.clone(),
                };
                let remove = v1::RemovePodSandboxRequest { pod_sandbox_id };
                let client = truth.client();
                // containerd closes its connection to an exiting shim, and a call that uses it fails.
                wait::until("the sandbox is stopped", TIMEOUT, || {
                    Ok(truth.block_on(client.stop_pod_sandbox(stop.clone())).ok())
                })
                .unwrap();
                truth.block_on(client.remove_pod_sandbox(remove)).unwrap();
            }
        };
        self.runtime.without_agent(lose).unwrap();
    }

    fn log_end(&self) -> String {
        let log = std::fs::read_to_string(self.agent.log_path()).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(40)..].join("\n")
    }
}

impl Drop for Joined {
    fn drop(&mut self) {
        if let Ok(model) = self.cluster.api().model()
            && !std::thread::panicking()
        {
            assert_eq!(model.violations(), []);
        }
    }
}

/// A pod with one container that runs this script.
pub(crate) fn pod(name: &str, script: &str) -> Value {
    json!({
        "metadata": { "name": name, "namespace": "default", "labels": { "app": name } },
        "spec": {
            "terminationGracePeriodSeconds": 2,
            "containers": [{
                "name": "main",
                "image": IMAGE,
                "imagePullPolicy": "IfNotPresent",
                "command": ["sh", "-c", script],
            }],
        },
    })
}

/// The same, bound to the node: no scheduler is asked.
pub(crate) fn bound(name: &str, script: &str) -> Value {
    let mut pod = pod(name, script);
    pod["spec"]["nodeName"] = "worker".into();
    pod
}

/// The same with an `emptyDir` on `/data`.
pub(crate) fn with_volume(mut pod: Value, empty_dir: &Value) -> Value {
    pod["spec"]["volumes"] = json!([{ "name": "data", "emptyDir": empty_dir }]);
    pod["spec"]["containers"][0]["volumeMounts"] =
        json!([{ "name": "data", "mountPath": "/data" }]);
    pod
}

/// A script that runs until SIGTERM.
pub(crate) const WAITS: &str = "trap 'exit 0' TERM; echo begins; while :; do sleep 0.1; done";

/// The status of a condition; empty if there is none.
pub(crate) fn condition(object: &Value, kind: &str) -> String {
    let status = status::condition(object, kind)["status"].as_str();
    status.unwrap_or_default().to_owned()
}

/// Restarts of the first container.
pub(crate) fn restarts(pod: &Value) -> u64 {
    let count = &pod["status"]["containerStatuses"][0]["restartCount"];
    count.as_u64().unwrap_or_default()
}

/// Waits until the output of a kubectl command meets a condition.
pub(crate) fn wait_stdout(
    kubectl: &Kubectl,
    words: &[&str],
    wanted: impl Fn(&str) -> bool,
) -> String {
    let mut last = String::new();
    let seen = wait::until(&format!("kubectl {words:?}"), TIMEOUT, || {
        let output = kubectl.run(words);
        last = format!("{}{}", output.stdout, output.stderr);
        Ok((output.code == 0 && wanted(&output.stdout)).then_some(output.stdout))
    });
    seen.unwrap_or_else(|error| panic!("{error}: {last}"))
}
