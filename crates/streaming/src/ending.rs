//! Why a session ends that neither its client nor its process has ended.

use std::{fmt, time::Duration};

use rubelet_base::duration::format_go;

/// Time for the client to receive the reason before its connection closes.
pub(crate) const TOLD_WITHIN: Duration = Duration::from_secs(1);

/// Why a session ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SessionEnding {
    /// The server stops.
    Stopping,
    /// There was no traffic for this time.
    Idle(Duration),
    /// No more connections to ports are possible.
    Ports(PortsEnd),
}

/// Why no more connections to the ports of a pod are possible.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PortsEnd {
    /// The connection that carries them is lost.
    ConnectionLost,
    /// The pod has stopped.
    PodStopped,
}

impl fmt::Display for SessionEnding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stopping => f.write_str("the node agent is stopping"),
            Self::Idle(after) => {
                write!(f, "the session had no traffic for {}", format_go(*after))
            }
            Self::Ports(PortsEnd::ConnectionLost) => {
                f.write_str("the connection to the container runtime was lost")
            }
            Self::Ports(PortsEnd::PodStopped) => f.write_str("the pod has stopped"),
        }
    }
}
