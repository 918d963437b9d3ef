//! The tasks of the node against a model of the API server, in paused time.

mod keep;
mod leases;
mod model;
mod odd;
mod register;
mod runtime;
mod sim;

use std::{path::PathBuf, sync::Arc, time::Duration};

use jiff::Timestamp;
use rubelet_node_plan::{
    eviction::Pressure,
    node_status::{NodeFacts, NodeSettings, object::Node},
};
use rubelet_node_state::{
    clock::Clock,
    events::{Event, EventType, Recorder, Subject},
    metrics::NodeMetrics,
    runtime_state::RuntimeState,
    shutdown_state::ShutdownState,
};
use rubelet_parity::event_text::find;
use tokio::{sync::watch, task::JoinHandle, time::sleep};

use self::model::Model;
use super::{NodeHandle, NodeParts, RuntimeImages, start};

/// A name that is an address: nothing has to be resolved.
const NAME: &str = "192.0.2.7";
/// When the tests begin, in seconds since 1970.
const BEGIN: i64 = 1_800_000_000;

/// What the node's tasks learn from other parts of the agent.
struct Outside {
    recorder: Recorder,
    clock: Clock,
    runtime: watch::Sender<RuntimeState>,
    images: watch::Sender<RuntimeImages>,
    pressure: watch::Sender<Pressure>,
    shutdown: watch::Sender<ShutdownState>,
    problem: watch::Sender<Option<String>>,
    metrics: Arc<NodeMetrics>,
}

impl Outside {
    fn new() -> Self {
        let clock = Clock::following_tokio(Timestamp::from_second(BEGIN).unwrap());
        Self {
            recorder: Recorder::new(clock.clone()),
            clock,
            runtime: watch::Sender::new(RuntimeState::default()),
            images: watch::Sender::new(RuntimeImages::default()),
            pressure: watch::Sender::new(Pressure::default()),
            shutdown: watch::Sender::default(),
            problem: watch::Sender::new(None),
            metrics: NodeMetrics::new(),
        }
    }

    fn parts<C>(&self, client: C) -> NodeParts<C> {
        NodeParts {
            client,
            settings: NodeSettings::new(NAME),
            facts: NodeFacts {
                cpus: 2,
                memory: 4 << 30,
                boot_id: "boot-1".into(),
                os: "linux".into(),
                architecture: "amd64".into(),
                ..NodeFacts::default()
            },
            runtime: self.runtime.subscribe(),
            images: self.images.subscribe(),
            pressure: self.pressure.subscribe(),
            shutdown: self.shutdown.subscribe(),
            problems: Arc::new(|| None),
            problem: self.problem.clone(),
            recorder: self.recorder.clone(),
            clock: self.clock.clone(),
            root: PathBuf::from("/"),
            server_port: Some(10250),
            apparmor: false,
            allowed_unsafe_sysctls: Arc::default(),
            metrics: Arc::clone(&self.metrics),
        }
    }
}

/// A runtime that is ready.
fn ready() -> RuntimeState {
    RuntimeState {
        name: "containerd".into(),
        version: "containerd 2.1.4".into(),
        answered: true,
        ..RuntimeState::default()
    }
}

/// A node at work.
struct Agent {
    handle: NodeHandle,
    model: Model,
    recorder: Recorder,
    runtime: watch::Sender<RuntimeState>,
    images: watch::Sender<RuntimeImages>,
    pressure: watch::Sender<Pressure>,
    shutdown: watch::Sender<ShutdownState>,
    problem: watch::Sender<Option<String>>,
    metrics: Arc<NodeMetrics>,
    task: JoinHandle<()>,
}

impl Agent {
    /// Starts the node against that API server.
    fn start(model: &Model, change: impl FnOnce(&mut NodeSettings)) -> Self {
        let outside = Outside::new();
        let mut parts = outside.parts(());
        change(&mut parts.settings);
        let changes = model.changes();
        let (handle, tasks) = start(parts, model.clone(), move |seen| changes.follow(seen));
        Self {
            handle,
            model: model.clone(),
            recorder: outside.recorder,
            runtime: outside.runtime,
            images: outside.images,
            pressure: outside.pressure,
            shutdown: outside.shutdown,
            problem: outside.problem,
            metrics: outside.metrics,
            task: tokio::spawn(tasks),
        }
    }

    /// Starts the node, with a runtime that is ready.
    fn ready(model: &Model) -> Self {
        let agent = Self::start(model, |_| {});
        agent.runtime_is_ready();
        agent
    }

    fn runtime_is_ready(&self) {
        self.runtime.send_replace(ready());
    }

    fn runtime_is_silent(&self) {
        self.runtime.send_modify(|state| {
            state.silent = true;
            state.problem = Some("container runtime is down: refused".into());
        });
    }

    /// Reasons of the node's events in their order, with how often they came.
    fn events(&self) -> Vec<String> {
        let mut rows = self.recorder.board().list();
        rows.sort_by_key(|(_, version, _)| *version);
        let of_node = rows
            .iter()
            .filter(|(_, _, event)| event.subject == Subject::Node(NAME.into()));
        of_node
            .map(|(_, _, event)| match event.count {
                1 => event.reason.to_string(),
                count => format!("{} x{count}", event.reason),
            })
            .collect()
    }

    /// `status` and `message` of the condition Ready at the API server.
    fn shown_ready(&self) -> Option<(String, String)> {
        let node = self.model.node()?;
        let ready = node.status.condition("Ready")?;
        Some((ready.status.to_string(), ready.message.to_string()))
    }

    fn is_ready(&self) -> bool {
        self.shown_ready()
            .is_some_and(|(status, _)| status == "True")
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let events = self.recorder.board().list();
        let known = |event: &Event| {
            let warning = event.kind == EventType::Warning;
            find(warning, &event.reason, &event.message).is_some()
        };
        let unknown = events.iter().find(|(_, _, event)| !known(event));
        assert!(std::thread::panicking() || unknown.is_none(), "{unknown:?}");
        self.task.abort();
    }
}

async fn seconds(count: u64) {
    sleep(Duration::from_secs(count)).await;
}

async fn millis(count: u64) {
    sleep(Duration::from_millis(count)).await;
}

/// A node as another kubelet left it.
fn left_behind() -> Node {
    let mut node = Node::default();
    node.metadata.name = NAME.into();
    node.metadata.labels = [("role".into(), "web".into())].into();
    node.status.node_info.boot_id = "boot-0".into();
    node.status.capacity = [("nvidia.com/gpu".into(), "8".into())].into();
    node
}
