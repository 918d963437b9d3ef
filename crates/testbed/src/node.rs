//! A node for tests of pods: a private runtime, an agent on it, and common queries.

mod power;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::agent::AgentBuilder;
use crate::cri_truth::{Container, Sandbox};
use crate::scratch::Scratch;
use crate::{Agent, CriTruth, TestRuntime, status};

/// Timeout of each wait on a busy machine.
pub const TIMEOUT: Duration = Duration::from_secs(60);
/// The pods of a manifest without a namespace.
const PODS: &str = "/api/v1/namespaces/default/pods";
const EVENTS: &str = "/api/v1/namespaces/default/events";

/// A running agent on a runtime of its own. When the value is dropped, everything of it is removed.
pub struct Node {
    // Dropped before its runtime.
    agent: Agent,
    truth: CriTruth,
    runtime: TestRuntime,
}

impl Node {
    /// Starts one and waits until the agent is ready.
    ///
    /// # Errors
    /// When the runtime or the agent can't be started.
    pub fn start() -> Result<Self> {
        Self::start_with(|builder| builder)
    }

    /// Like [`Node::start`], with an agent that `configure` sets up.
    ///
    /// # Errors
    /// As [`Node::start`].
    pub fn start_with(configure: impl FnOnce(AgentBuilder) -> AgentBuilder) -> Result<Self> {
        Self::start_on(TestRuntime::start()?, configure)
    }

    /// Like [`Node::start_with`], on an existing runtime.
    ///
    /// # Errors
    /// When the agent can't be started.
    pub fn start_on(
        runtime: impl Into<TestRuntime>,
        configure: impl FnOnce(AgentBuilder) -> AgentBuilder,
    ) -> Result<Self> {
        let runtime = runtime.into();
        let truth = runtime.truth()?;
        let agent = configure(Agent::builder(&runtime)).start()?;
        let node = Self {
            agent,
            truth,
            runtime,
        };
        node.agent.wait_ready(TIMEOUT)?;
        Ok(node)
    }

    /// One node for all concurrent tests of this process; it is removed with the last of them. Pod
    /// names must be unique per test.
    ///
    /// # Errors
    /// As [`Node::start`].
    pub fn shared() -> Result<Arc<Self>> {
        Self::shared_with(|builder| builder)
    }

    /// Like [`Node::shared`], with an agent that `configure` sets up. All tests of a process must
    /// configure it in the same way: only the first configuration is used.
    ///
    /// # Errors
    /// As [`Node::start`].
    pub fn shared_with(configure: impl FnOnce(AgentBuilder) -> AgentBuilder) -> Result<Arc<Self>> {
        static SHARED: Mutex<Weak<Node>> = Mutex::new(Weak::new());
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(running) = shared.upgrade() {
            return Ok(running);
        }
        let started = Arc::new(Self::start_with(configure)?);
        *shared = Arc::downgrade(&started);
        Ok(started)
    }

    /// The agent.
    #[must_use]
    pub fn agent(&self) -> &Agent {
        &self.agent
    }

    /// The agent, to be killed and started again.
    pub fn agent_mut(&mut self) -> &mut Agent {
        &mut self.agent
    }

    /// The runtime's own state.
    #[must_use]
    pub fn truth(&self) -> &CriTruth {
        &self.truth
    }

    /// The runtime.
    #[must_use]
    pub fn runtime(&self) -> &TestRuntime {
        &self.runtime
    }

    /// The private directory and name of this node.
    #[must_use]
    pub fn scratch(&self) -> &Scratch {
        self.runtime.scratch()
    }

    /// The process of the runtime: its daemon's or the agent's.
    ///
    /// # Errors
    /// When it doesn't run.
    pub fn runtime_pid(&self) -> Result<u32> {
        let pid = match &self.runtime {
            TestRuntime::Containerd(containerd) => containerd.pid(),
            TestRuntime::Embedded(_) => self.agent.pid(),
            TestRuntime::Crio(crio) => crio.pid(),
        };
        pid.context("the runtime isn't running")
    }

    /// A new directory on the host for pods to mount, which is removed with the node.
    ///
    /// # Errors
    /// When it can't be created.
    pub fn host_dir(&self, name: &str) -> Result<PathBuf> {
        self.runtime.scratch().subdir(&format!("host/{name}"))
    }

    /// Writes a pod's manifest, or replaces it.
    ///
    /// # Errors
    /// When the manifest has no name, or can't be written.
    pub fn apply(&self, pod: &Value) -> Result<()> {
        let name = pod["metadata"]["name"]
            .as_str()
            .context("the manifest has no metadata.name")?;
        self.agent.write_manifest(&file_of(name), &pod.to_string())
    }

    /// Removes a pod's manifest.
    ///
    /// # Errors
    /// When it isn't there.
    pub fn remove(&self, name: &str) -> Result<()> {
        self.agent.remove_manifest(&file_of(name))
    }

    /// The pod in the API; `None` if it is not listed.
    ///
    /// # Errors
    /// When the agent doesn't answer.
    pub fn pod(&self, name: &str) -> Result<Option<Value>> {
        let path = format!("{PODS}/{}", self.agent.full_name(name));
        let response = self.agent.get(&path)?;
        match response.status {
            200 => Ok(Some(serde_json::from_slice(&response.body)?)),
            404 => Ok(None),
            other => bail!("GET {path} returned status {other}: {}", response.text()),
        }
    }

    /// Waits until the pod in the API satisfies `wanted`.
    ///
    /// # Errors
    /// When that takes longer than [`TIMEOUT`]; the message holds the pod's status.
    pub fn wait(&self, name: &str, what: &str, wanted: impl Fn(&Value) -> bool) -> Result<Value> {
        let mut last = Value::Null;
        let found = self
            .agent
            .wait_for(&format!("pod {name} {what}"), TIMEOUT, |_| {
                last = self.pod(name)?.unwrap_or_default();
                Ok(wanted(&last).then(|| last.take()))
            });
        found.with_context(|| format!("the last status of pod {name}: {:#}", last["status"]))
    }

    /// Waits until the pod is ready.
    ///
    /// # Errors
    /// As [`Node::wait`].
    pub fn wait_ready(&self, name: &str) -> Result<Value> {
        self.wait(name, "is ready", status::is_ready)
    }

    /// Waits until the pod's phase is Succeeded or Failed.
    ///
    /// # Errors
    /// As [`Node::wait`].
    pub fn wait_end(&self, name: &str) -> Result<Value> {
        self.wait(name, "has ended", status::has_ended)
    }

    /// Waits until the pod is gone from the API.
    ///
    /// # Errors
    /// When that takes longer than [`TIMEOUT`].
    pub fn wait_gone(&self, name: &str) -> Result<()> {
        self.agent
            .wait_for(&format!("pod {name} is gone"), TIMEOUT, |_| {
                Ok(self.pod(name)?.is_none().then_some(()))
            })
    }

    /// Starts a pod whose containers exit by themselves; like [`Node::finished`].
    ///
    /// # Errors
    /// When it doesn't end, or ends with another phase than Succeeded.
    pub fn output(&self, pod: &Value) -> Result<String> {
        self.apply(pod)?;
        self.finished(pod["metadata"]["name"].as_str().unwrap_or_default())
    }

    /// Waits until a pod has terminated, and returns the log of its container `main`.
    ///
    /// # Errors
    /// When it doesn't end, or ends with another phase than Succeeded.
    pub fn finished(&self, name: &str) -> Result<String> {
        let ended = self.wait_end(name)?;
        let log = self.log(name, "main")?;
        if ended["status"]["phase"] != "Succeeded" {
            bail!("pod {name} has failed: {:#}\n{log}", ended["status"]);
        }
        Ok(log)
    }

    /// The log of a container.
    ///
    /// # Errors
    /// The agent does not return it.
    pub fn log(&self, pod: &str, container: &str) -> Result<String> {
        let path = format!(
            "{PODS}/{}/log?container={container}",
            self.agent.full_name(pod)
        );
        let response = self.agent.get(&path)?;
        if response.status != 200 {
            bail!(
                "GET {path} gave status {}: {}",
                response.status,
                response.text()
            );
        }
        Ok(response.text())
    }

    /// Waits until a container has logged a text; returns the whole log.
    ///
    /// # Errors
    /// When that takes longer than [`TIMEOUT`].
    pub fn wait_log(&self, pod: &str, container: &str, part: &str) -> Result<String> {
        let what = format!("container {container} of pod {pod} has written {part:?}");
        self.agent.wait_for(&what, TIMEOUT, |_| {
            Ok(Some(self.log(pod, container)?).filter(|log| log.contains(part)))
        })
    }

    /// The events of a pod: type, reason and message.
    ///
    /// # Errors
    /// When the agent doesn't answer.
    pub fn events(&self, pod: &str) -> Result<Vec<[String; 3]>> {
        let full = self.agent.full_name(pod);
        let list = self.agent.get_json(EVENTS)?;
        let items = list["items"].as_array().context("the list has no items")?;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        Ok(items
            .iter()
            .filter(|event| event["involvedObject"]["name"] == full.as_str())
            .map(|event| ["type", "reason", "message"].map(|field| text(&event[field])))
            .collect())
    }

    /// Waits for an event of a pod whose message contains `part`; the whole message.
    ///
    /// # Errors
    /// When it takes longer than [`TIMEOUT`]; the error holds all events of the pod.
    pub fn wait_event(&self, pod: &str, reason: &str, part: &str) -> Result<String> {
        let mut events = Vec::new();
        let what = format!("pod {pod} has an event {reason}: …{part}…");
        let found = self.agent.wait_for(&what, TIMEOUT, |_| {
            events = self.events(pod)?;
            Ok(events
                .iter()
                .find(|[_, found, message]| found == reason && message.contains(part))
                .map(|[_, _, message]| message.clone()))
        });
        found.with_context(|| format!("the events of pod {pod}: {events:#?}"))
    }

    /// All containers of a pod that the runtime has, the newest first.
    ///
    /// # Errors
    /// The runtime can't be queried.
    pub fn containers(&self, pod: &str) -> Result<Vec<Container>> {
        let full = self.agent.full_name(pod);
        let mut found = self.truth.containers()?;
        found.retain(|container| container.pod == full);
        found.sort_by_key(|container| std::cmp::Reverse(container.created_at));
        Ok(found)
    }

    /// A running container of a pod.
    ///
    /// # Errors
    /// There is none, or the runtime can't be queried.
    pub fn running(&self, pod: &str, container: &str) -> Result<Container> {
        let found = self.truth.running(&self.agent.full_name(pod), container)?;
        found.with_context(|| format!("the runtime runs no container {container} of pod {pod}"))
    }

    /// All sandboxes of a pod that the runtime has, the newest first.
    ///
    /// # Errors
    /// The runtime can't be queried.
    pub fn sandboxes(&self, pod: &str) -> Result<Vec<Sandbox>> {
        let full = self.agent.full_name(pod);
        let mut found = self.truth.sandboxes()?;
        found.retain(|sandbox| sandbox.pod == full);
        found.sort_by_key(|sandbox| std::cmp::Reverse(sandbox.attempt));
        Ok(found)
    }

    /// Runs a command of `rubelet` that must succeed; returns its standard output.
    ///
    /// # Errors
    /// It can't be run or fails; the message contains its output.
    pub fn cli(&self, words: &[&str]) -> Result<String> {
        let output = self.agent.cli(words)?;
        if output.code != 0 {
            bail!(
                "`rubelet {}` ended with {}: {}{}",
                words.join(" "),
                output.code,
                output.stdout,
                output.stderr
            );
        }
        Ok(output.stdout)
    }

    /// Runs a command in a running container; returns its standard output.
    ///
    /// # Errors
    /// When it can't be run or fails.
    pub fn exec(&self, pod: &str, container: &str, command: &[&str]) -> Result<String> {
        let id = self.running(pod, container)?.id;
        self.truth.exec(&id, command)
    }

    /// The directory of a pod's volumes and files.
    ///
    /// # Errors
    /// When the API doesn't show the pod.
    pub fn pod_dir(&self, name: &str) -> Result<PathBuf> {
        let pod = self.pod(name)?;
        let pod = pod.with_context(|| format!("there is no pod {name}"))?;
        let uid = pod["metadata"]["uid"].as_str();
        let uid = uid.with_context(|| format!("pod {name} has no uid"))?;
        Ok(self.agent.root_dir().join("pods").join(uid))
    }
}

fn file_of(name: &str) -> String {
    format!("{name}.json")
}
