//! Probes and lifecycle hooks of a container.

mod annotation;

use std::time::Duration;

pub use annotation::hook_from_annotation;

/// `livenessProbe`, `readinessProbe` or `startupProbe`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Probe {
    /// What is tried.
    pub handler: ProbeHandler,
    /// `initialDelaySeconds`, counted from the start of the container.
    pub initial_delay: Duration,
    /// `periodSeconds`, at least 1 s, default 10 s.
    pub period: Duration,
    /// `timeoutSeconds`, at least 1 s, default 1 s.
    pub timeout: Duration,
    /// `successThreshold`, at least 1; 1 for liveness and startup.
    pub success_threshold: u32,
    /// `failureThreshold`, at least 1, default 3.
    pub failure_threshold: u32,
    /// `terminationGracePeriodSeconds`: replaces the pod's where this probe ends the container.
    pub termination_grace: Option<Duration>,
}

/// What a probe does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProbeHandler {
    /// `exec`: a command in the container; exit code 0 is success.
    Exec(Vec<Box<str>>),
    /// `httpGet`: status 200 to 399 is success.
    Http(HttpGet),
    /// `tcpSocket`: a connection that opens is success.
    Tcp(TcpSocket),
    /// `grpc`: the health service answers SERVING.
    Grpc(GrpcCheck),
}

/// `httpGet`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpGet {
    /// `host`; `None` is the pod's address.
    pub host: Option<Box<str>>,
    /// `port`.
    pub port: TargetPort,
    /// `path`, with a query; default `/`.
    pub path: Box<str>,
    /// `scheme` is HTTPS; certificates are not verified.
    pub https: bool,
    /// `httpHeaders`, in order; a name may repeat.
    pub headers: Vec<(Box<str>, Box<str>)>,
}

/// `tcpSocket`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TcpSocket {
    /// `host`; `None` is the pod's address.
    pub host: Option<Box<str>>,
    /// `port`.
    pub port: TargetPort,
}

/// `grpc`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrpcCheck {
    /// `port`.
    pub port: u16,
    /// `service`: the name in the request; empty asks for the whole server.
    pub service: Box<str>,
}

/// A port as a number, or the name of a port that the container does not have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TargetPort {
    /// The number, written or found by its name among the container's ports.
    Number(u16),
    /// No port of the container has this name.
    Unknown(Box<str>),
}

/// `lifecycle`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Lifecycle {
    /// `postStart`: runs right after the start; where it fails, the container is ended.
    pub post_start: Option<Hook>,
    /// `preStop`: runs before SIGTERM, within the grace period.
    pub pre_stop: Option<Hook>,
    /// `preStop` as the runtime's annotation holds it: the JSON of a v1 LifecycleHandler.
    pub pre_stop_json: Option<Box<str>>,
}

/// What a hook does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hook {
    /// `exec`: a command in the container.
    Exec(Vec<Box<str>>),
    /// `httpGet`.
    Http(HttpGet),
    /// `sleep`.
    Sleep(Duration),
    /// `tcpSocket`: accepted by the API and refused when it is to run, as the kubelet does.
    Tcp(TcpSocket),
}
