//! The server's view of the node.

use std::{io, pin::Pin, time::Duration};

use async_trait::async_trait;
use bytes::Bytes;
use futures_core::Stream;
use jiff::Timestamp;
use rubelet_http_core::resource::Resource;
use rubelet_streaming::SessionTarget;
use serde_json::Value;

use crate::{
    ActionError, FilesAnswer, FilesRefusal, FilesRequest, NetRefusal, NetRequest, NetStream,
    Object, PodAction, PodAnswer, PodRef, RunRequest, SessionError, SessionRequest, StatsRequest,
};

/// Why a health check fails, in words for an operator.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unhealthy(pub String);

/// The node as the server sees it. Every method answers from memory, except
/// [`container_log`](Self::container_log), [`system_log`](Self::system_log), [`act`](Self::act), [`session`](Self::session),
/// [`run`](Self::run) and [`stats`](Self::stats).
#[async_trait]
pub trait NodeView: Send + Sync + 'static {
    /// All objects of a resource, with the version of the list.
    fn list(&self, resource: Resource) -> Listing;

    /// The changes after the version `since`, in order.
    ///
    /// The stream keeps no backlog: a reader that is too slow gets [`Expired`], never an unbounded
    /// queue.
    ///
    /// # Errors
    /// [`Expired`] when changes after `since` are no longer known, or `since` is not a version of
    /// this run of the agent.
    fn watch(&self, resource: Resource, since: u64) -> Result<WatchStream, Expired>;

    /// The log of one container. The server has checked that the pod exists and has a container
    /// of that name.
    ///
    /// # Errors
    /// The log is not available; the variant says whether the client or the node is at fault.
    async fn container_log(&self, request: LogRequest) -> Result<LogStream, LogError>;

    /// What is at a path, names below `/var/log`. The server has authorized it.
    ///
    /// # Errors
    /// There is nothing; or it is not shown, which is [`LogError::BadRequest`]; or it can't be read.
    async fn system_log(&self, path: Vec<String>) -> Result<SystemLog, LogError> {
        drop(path);
        Err(LogError::NotFound(String::new()))
    }

    /// Acts on a pod, or explains its state.
    ///
    /// # Errors
    /// It was not done; the variant says whether the client or the node is at fault.
    async fn act(&self, pod: &PodRef, action: PodAction) -> Result<PodAnswer, ActionError>;

    /// Finds what serves a session. The server has authorized it.
    ///
    /// # Errors
    /// There is no such pod or container, or the runtime refuses.
    async fn session(&self, request: &SessionRequest) -> Result<SessionTarget, SessionError>;

    /// Runs a command in a running container until it exits; the output is stdout followed by
    /// stderr.
    ///
    /// # Errors
    /// There is no such pod or container, the runtime refuses, or the command failed.
    async fn run(&self, request: &RunRequest) -> Result<Bytes, SessionError>;

    /// Reads or writes files of a running container. The server has authorized it.
    ///
    /// # Errors
    /// It was not done; the variant says whether the client or the node is at fault.
    async fn files(&self, request: FilesRequest) -> Result<FilesAnswer, FilesRefusal> {
        drop(request);
        Err(FilesRefusal::NotRunning)
    }

    /// Runs a probe of the network from inside a pod. The server has authorized it.
    ///
    /// # Errors
    /// It is not run; the variant says whether the client or the node is at fault.
    async fn net(&self, request: NetRequest) -> Result<NetStream, NetRefusal> {
        drop(request);
        Err(NetRefusal::NotReady)
    }

    /// A document of statistics. Takes a few seconds at most; numbers that cannot be read are missing.
    async fn stats(&self, request: StatsRequest) -> String;

    /// Idle timeout of a session; zero means no limit.
    fn session_idle_timeout(&self) -> Duration;

    /// The KubeletConfiguration in force, for `/configz`.
    fn config(&self) -> Value;

    /// Checks that the loops make progress, for `/healthz`.
    ///
    /// # Errors
    /// The stuck loop, and the time since it last made progress.
    fn syncloop(&self) -> Result<(), Unhealthy>;

    /// Checks that every source has reported and the runtime is available, for `/readyz`.
    ///
    /// # Errors
    /// The missing parts.
    fn ready(&self) -> Result<(), Unhealthy>;

    /// All metrics in Prometheus' text format 0.0.4, for `/metrics`.
    fn metrics(&self) -> String;

    /// One line on the state of the node, such as `3/4 pods ready`; shown by `/readyz?verbose`.
    fn summary(&self) -> String;

    /// Notices for an operator although no check fails: a name and a line each, shown by
    /// `/readyz?verbose`. Neither contains a line break.
    fn notices(&self) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    /// The pods that have running containers, for `/runningpods/`.
    fn running_pods(&self) -> Vec<RunningPod>;

    /// Metrics of probes in Prometheus' text format 0.0.4, for `/metrics/probes`.
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

/// The objects of a resource at one moment.
#[derive(Debug, Clone)]
pub struct Listing {
    /// The version of the list: a watch from here misses nothing.
    pub resource_version: u64,
    /// The objects, ordered by namespace and name.
    pub items: Vec<Object>,
}

/// The kind of a change of an object.
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
    /// The kind of the change.
    pub kind: WatchKind,
    /// The object afterwards; its version is the version of the change.
    pub object: Object,
}

/// The requested changes are no longer known; list again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("too old resource version")]
pub struct Expired;

/// Changes in order. Polled by the reader; ends after the first [`Expired`].
pub type WatchStream = Pin<Box<dyn Stream<Item = Result<WatchEvent, Expired>> + Send>>;

/// Chunks of a log. An error truncates the response, so that the reader sees it is incomplete.
pub type LogStream = Pin<Box<dyn Stream<Item = Result<Bytes, io::Error>> + Send>>;

/// A file or a directory of the system's logs.
pub enum SystemLog {
    /// A directory: names in order, those of directories with a slash at the end.
    Directory(Vec<String>),
    /// A file.
    File {
        /// False if it seems to be binary.
        is_text: bool,
        /// Its content.
        content: LogStream,
    },
}

/// A log, and the requested part of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogRequest {
    /// Namespace of the pod.
    pub namespace: String,
    /// Name of the pod.
    pub pod: String,
    /// Name of the container: init, regular or ephemeral.
    pub container: String,
    /// Stream new lines until the container exits.
    pub follow: bool,
    /// The log of the instance before the current one.
    pub previous: bool,
    /// Leave out older lines.
    pub since: Option<LogSince>,
    /// Put the time in RFC 3339 and a space before each line.
    pub timestamps: bool,
    /// Only this many lines from the end.
    pub tail_lines: Option<u64>,
    /// Stop after this many bytes.
    pub limit_bytes: Option<u64>,
    /// Only stdout or only stderr.
    pub output: Option<LogOutput>,
}

/// One of the outputs of a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogOutput {
    /// Stdout.
    Stdout,
    /// Stderr.
    Stderr,
}

impl LogOutput {
    /// The value in PodLogOptions.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Stdout => "Stdout",
            Self::Stderr => "Stderr",
        }
    }
}

/// The time at which a log begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogSince {
    /// Seconds before now, at least 1.
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
    /// The pod or its log is gone.
    #[error("{0}")]
    NotFound(String),
    /// The node failed.
    #[error("{0}")]
    Internal(String),
}
