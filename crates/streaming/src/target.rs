//! The target of a session, and its options.

use std::{future::Future, pin::Pin, sync::Arc, time::Duration};

use http::Uri;
use rubelet_cri::v1;

use crate::{Link, Sessions, StdStreams};

/// The kinds of sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SessionKind {
    /// A command in a container.
    Exec,
    /// The first process of a container.
    Attach,
    /// Ports of a pod.
    PortForward,
}

/// The target of a session.
pub enum SessionTarget {
    /// A command, in a runtime of this process.
    Exec(v1::ExecRequest, Arc<dyn Sessions>),
    /// A container's first process, in a runtime of this process.
    Attach(v1::AttachRequest, Arc<dyn Sessions>),
    /// Ports, in a runtime of this process. A WebSocket client names them in its request.
    PortForward(v1::PortForwardRequest, Arc<dyn Sessions>),
    /// The streaming server of another runtime; the URL is its response to the CRI's `Exec`,
    /// `Attach` or `PortForward`. No redirects: this server speaks SPDY with that one, whatever its
    /// client speaks, and so can say to both why a session ends.
    Url {
        /// The URL.
        url: Uri,
        /// The kind of session.
        kind: SessionKind,
        /// The requested streams; none for ports.
        streams: StdStreams,
        /// The ports that the request named; SPDY names them later, one by one.
        ports: Vec<u16>,
    },
}

impl SessionTarget {
    /// The kind of the session.
    #[must_use]
    pub fn kind(&self) -> SessionKind {
        match self {
            Self::Exec(..) => SessionKind::Exec,
            Self::Attach(..) => SessionKind::Attach,
            Self::PortForward(..) => SessionKind::PortForward,
            Self::Url { kind, .. } => *kind,
        }
    }
}

/// The options of a session.
pub struct ServeOptions {
    /// A session without traffic ends after this time; `streamingConnectionIdleTimeout`. Zero means
    /// no limit.
    pub idle_timeout: Duration,
    /// Resolves when the server stops: the session ends, and its client is notified.
    pub shutdown: Pin<Box<dyn Future<Output = ()> + Send>>,
    /// The client's connection; the session ends if its network is cut. `None` is not watched.
    pub link: Option<Link>,
}
