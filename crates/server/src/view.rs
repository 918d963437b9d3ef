//! What the server may see of the node.

use std::{fmt, io, pin::Pin, sync::Arc};

use async_trait::async_trait;
use bytes::Bytes;
use futures_core::Stream;
use jiff::Timestamp;
use serde_json::Value;

use crate::{ActionError, PodAction, PodAnswer, PodRef, Resource};

/// The node as the server sees it. Every method answers from memory, except
/// [`container_log`](Self::container_log) and [`act`](Self::act).
#[async_trait]
pub trait NodeView: Send + Sync + 'static {
    /// Every object of a resource, with the version of the whole.
    fn list(&self, resource: Resource) -> Listing;

    /// The changes after the version `since`, in order.
    ///
    /// The stream holds no backlog of its own: a reader that is too slow finds [`Expired`] in it,
    /// never an unbounded queue behind it.
    ///
    /// # Errors
    /// [`Expired`] when changes after `since` are no longer known, or `since` is not a version of
    /// this run of the agent.
    fn watch(&self, resource: Resource, since: u64) -> Result<WatchStream, Expired>;

    /// The log of one container. The server has checked that the pod exists and has a container
    /// of that name.
    ///
    /// # Errors
    /// The log can't be had; the variant says whose fault that is.
    async fn container_log(&self, request: LogRequest) -> Result<LogStream, LogError>;

    /// Does something to a pod, or tells why it is as it is.
    ///
    /// # Errors
    /// It was not done; the variant says whose fault that is.
    async fn act(&self, pod: &PodRef, action: PodAction) -> Result<PodAnswer, ActionError>;

    /// The KubeletConfiguration in force, for `/configz`.
    fn config(&self) -> Value;

    /// Whether the loops make progress, for `/healthz`.
    ///
    /// # Errors
    /// What is stuck, and for how long.
    fn syncloop(&self) -> Result<(), String>;

    /// Whether every source has answered and the runtime is there, for `/readyz`.
    ///
    /// # Errors
    /// What is still missing.
    fn ready(&self) -> Result<(), String>;

    /// All numbers in Prometheus' text format 0.0.4, for `/metrics`.
    fn metrics(&self) -> String;

    /// One line on the state of the node, such as `3/4 pods ready`; shown by `/readyz?verbose`.
    fn summary(&self) -> String;

    /// What an operator should know though nothing fails: a name and a line for each, shown by
    /// `/readyz?verbose`. Neither holds a line break.
    fn notices(&self) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    /// The pods that have running containers, for `/runningpods/`.
    fn running_pods(&self) -> Vec<RunningPod>;

    /// Numbers of probes in Prometheus' text format 0.0.4, for `/metrics/probes`.
    fn probe_metrics(&self) -> String;
}

/// A pod with running containers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunningPod {
    /// `metadata.namespace`.
    pub namespace: String,
    /// `metadata.name`.
    pub name: String,
    /// `metadata.uid`.
    pub uid: String,
    /// Name and image of each container that runs.
    pub containers: Vec<(String, String)>,
}

/// Draws the JSON of an object when somebody asks for it.
///
/// `apiVersion`, `kind` and `metadata.resourceVersion` are filled in by the server.
pub trait Render: Send + Sync + 'static {
    /// The object, with `metadata` and whatever else its kind has.
    fn render(&self) -> Value;
}

impl<F: Fn() -> Value + Send + Sync + 'static> Render for F {
    fn render(&self) -> Value {
        self()
    }
}

/// One version of one object. Cheap to clone.
#[derive(Clone)]
pub struct Object {
    /// `metadata.namespace`; empty for resources without namespaces.
    pub namespace: Arc<str>,
    /// `metadata.name`.
    pub name: Arc<str>,
    /// `metadata.resourceVersion`.
    pub resource_version: u64,
    /// Everything else.
    pub body: Arc<dyn Render>,
}

impl Object {
    /// An object that has no version yet.
    pub fn new(namespace: &str, name: &str, body: impl Render) -> Self {
        Self {
            namespace: namespace.into(),
            name: name.into(),
            resource_version: 0,
            body: Arc::new(body),
        }
    }

    /// The complete object.
    #[must_use]
    pub fn to_json(&self, resource: Resource) -> Value {
        let mut json = self.body.render();
        json["apiVersion"] = resource.api_version().into();
        json["kind"] = resource.kind().into();
        json["metadata"]["resourceVersion"] = self.resource_version.to_string().into();
        json
    }
}

impl fmt::Debug for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}/{}@{}",
            self.namespace, self.name, self.resource_version
        )
    }
}

/// The objects of a resource at one moment.
#[derive(Debug, Clone)]
pub struct Listing {
    /// The version of the whole: a watch from here misses nothing.
    pub resource_version: u64,
    /// The objects, ordered by namespace and name.
    pub items: Vec<Object>,
}

/// What happened to an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WatchKind {
    /// It is new.
    Added,
    /// It changed.
    Modified,
    /// It is gone; the event carries its last state.
    Deleted,
}

impl WatchKind {
    /// `type` of a watch event.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Added => "ADDED",
            Self::Modified => "MODIFIED",
            Self::Deleted => "DELETED",
        }
    }
}

/// One change.
#[derive(Debug, Clone)]
pub struct WatchEvent {
    /// What happened.
    pub kind: WatchKind,
    /// The object afterwards; its version is the version of the change.
    pub object: Object,
}

/// The requested changes are no longer known; list again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("too old resource version")]
pub struct Expired;

/// Changes in order. Pulled by the reader; ends after the first [`Expired`].
pub type WatchStream = Pin<Box<dyn Stream<Item = Result<WatchEvent, Expired>> + Send>>;

/// Pieces of a log. An error cuts the answer short, so that the reader sees it is incomplete.
pub type LogStream = Pin<Box<dyn Stream<Item = Result<Bytes, io::Error>> + Send>>;

/// Which part of which log is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogRequest {
    /// Namespace of the pod.
    pub namespace: String,
    /// Name of the pod.
    pub pod: String,
    /// Name of the container: init, regular or ephemeral.
    pub container: String,
    /// Go on with new lines until the container has ended.
    pub follow: bool,
    /// The log of the instance before the current one.
    pub previous: bool,
    /// Leave out older lines.
    pub since: Option<LogSince>,
    /// Put the time in RFC 3339 and a space before each line.
    pub timestamps: bool,
    /// Only so many lines from the end.
    pub tail_lines: Option<u64>,
    /// End after so many bytes.
    pub limit_bytes: Option<u64>,
    /// Only what was written to one of the two outputs.
    pub output: Option<LogOutput>,
}

/// One of the outputs of a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogOutput {
    /// The standard output.
    Stdout,
    /// The standard error output.
    Stderr,
}

impl LogOutput {
    /// The word of PodLogOptions.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Stdout => "Stdout",
            Self::Stderr => "Stderr",
        }
    }
}

/// Where in time a log begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogSince {
    /// So many seconds before now, at least 1.
    Seconds(u64),
    /// At that time.
    Time(Timestamp),
}

/// Why there is no log.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LogError {
    /// There can't be one now: the container waits to start, or has no previous instance.
    #[error("{0}")]
    BadRequest(String),
    /// The pod or its log has gone.
    #[error("{0}")]
    NotFound(String),
    /// The node failed.
    #[error("{0}")]
    Internal(String),
}
