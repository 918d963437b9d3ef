//! Sessions with containers: what a client asks of the node. How a connection becomes a session is in
//! [`rubelet_http_core::session`].

pub(crate) mod local;

use rubelet_streaming::StdStreams;

use crate::PodRef;

/// A request for a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionRequest {
    /// The pod.
    pub pod: PodRef,
    /// Its UID, where the client insists on one.
    pub uid: Option<String>,
    /// The requested action.
    pub action: SessionAction,
}

/// The action of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionAction {
    /// A command in a running container.
    Exec {
        /// Name of the container.
        container: String,
        /// The command and its arguments.
        command: Vec<String>,
        /// The standard streams of the client.
        streams: StdStreams,
    },
    /// The first process of a running container. Whether it has a terminal is said by its definition.
    Attach {
        /// Name of the container.
        container: String,
        /// The standard streams of the client.
        streams: StdStreams,
    },
    /// Ports of the pod.
    PortForward {
        /// Ports in the request; SPDY names them later, one by one.
        ports: Vec<u16>,
    },
}

/// A command whose output is the answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunRequest {
    /// The pod.
    pub pod: PodRef,
    /// Its UID, where the client insists on one.
    pub uid: Option<String>,
    /// Name of the container.
    pub container: String,
    /// The command and its arguments.
    pub command: Vec<String>,
}

/// Why there is no session.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SessionError {
    /// There is no pod of that name.
    #[error("pod does not exist")]
    NoPod,
    /// The pod of that name has another UID.
    #[error("pod not found")]
    OtherUid,
    /// The container does not run, or there is none of that name.
    #[error("the container does not run")]
    NotRunning,
    /// The pod has no ready sandbox.
    #[error("the pod has no ready sandbox")]
    NoSandbox,
    /// The runtime does not know what it was asked for.
    #[error("{0}")]
    RuntimeNotFound(String),
    /// The runtime has too many sessions.
    #[error("{0}")]
    RuntimeExhausted(String),
    /// The runtime failed, or the command did.
    #[error("{0}")]
    Runtime(String),
}
