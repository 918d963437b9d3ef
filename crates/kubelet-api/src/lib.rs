//! The kubelet's own API: over TLS with authentication and authorisation (10250), and the plain
//! read-only port (10255).
//!
//! A request passes, in this order: the limits of its connection, the router, which finds out what
//! its path stands for, authentication (client certificate, bearer token, anonymous), authorisation
//! (a right on a sub-resource of this node), and the endpoint. All of them see the same decoded
//! path (`path`). A path that never exists is answered with 404 to anybody, as in the kubelet;
//! every other path answers an unauthenticated client with 401 and nothing more.
//!
//! A check that fails is a refusal: a token that can't be verified is 401, a right that can't be
//! verified is 500.
//!
//! The port does nothing while it is idle: the client CA file is checked when a client connects. What
//! it shows of the node is a [`NodeView`], that of the local API; it changes no pod. Who the user of a
//! token is, and what users may do, is decided by others
//! ([`Authenticator`](rubelet_http_core::user::Authenticator),
//! [`Authorizer`](rubelet_http_core::user::Authorizer)).
//!
//! ```
//! use rubelet_kubelet_api::{EndpointOptions, TlsSettings};
//!
//! // `tlsMinVersion`, `tlsCipherSuites`, `tlsCurvePreferences`
//! let tls = TlsSettings::new("VersionTLS13", &[], &[]).unwrap();
//! assert!(tls.notes.is_empty(), "nothing is ignored");
//! assert!(TlsSettings::new("TLS 1.3", &[], &[]).is_err());
//! assert!(EndpointOptions::default().debugging_handlers);
//! ```

mod access;
mod answer;
mod attributes;
mod client_ca;
mod client_connection;
mod connection;
mod crypto;
mod endpoint;
mod log_options;
mod observe;
mod path;
mod plain_text;
mod pod_list;
mod port;
mod session;
mod session_path;
mod subject;
mod system_logs;
#[cfg(test)]
mod tests;
mod tls;

use std::{future::Future, net::SocketAddr, sync::Arc, time::Duration};

use rubelet_audit::AuditLog;
use rubelet_http_core::{
    connections::{Connections, PLAIN, SECURE},
    listener::accept_loop,
};
use rubelet_server::{BindError, NodeView};
use rustls::server::ResolvesServerCert;
use tokio::net::{TcpListener, TcpSocket};

pub use self::{
    access::Access,
    client_ca::{ClientCa, ClientCaError},
    endpoint::EndpointOptions,
    observe::{RequestLabels, RequestObserver},
    tls::{TlsSettings, TlsSettingsError},
};
use self::{
    port::{Port, PortSecurity},
    tls::TlsConfigs,
};

/// Connections that wait to be accepted.
const BACKLOG: u32 = 1024;

/// TCP keepalive: idle time and probe interval; after so many unanswered probes the client is
/// disconnected.
const KEEP_ALIVE: Duration = Duration::from_secs(30);
const KEEP_ALIVE_PROBES: u32 = 5;

/// The parts of the secure port.
pub struct SecureParts {
    /// Versions and cipher suites.
    pub tls: TlsSettings,
    /// Provides the node's certificate; queried at each handshake, so that it may change.
    pub certificate: Arc<dyn ResolvesServerCert>,
    /// Authentication and authorization of requests.
    pub access: Access,
    /// The enabled endpoints.
    pub options: EndpointOptions,
    /// Counts requests.
    pub observer: Arc<dyn RequestObserver>,
    /// Records requests; `None` records none.
    pub audit: Option<Arc<AuditLog>>,
}

/// Opens a port for [`serve_secure`] or [`serve_read_only`].
///
/// # Errors
/// The address is in use or not available.
pub async fn bind_port(address: SocketAddr) -> Result<TcpListener, BindError> {
    let open = || {
        let socket = match address {
            SocketAddr::V4(_) => TcpSocket::new_v4()?,
            SocketAddr::V6(_) => TcpSocket::new_v6()?,
        };
        socket.set_reuseaddr(true)?;
        // Accepted sockets inherit these options.
        socket.set_keepalive(true)?;
        rustix::net::sockopt::set_tcp_keepidle(&socket, KEEP_ALIVE)?;
        rustix::net::sockopt::set_tcp_keepintvl(&socket, KEEP_ALIVE)?;
        rustix::net::sockopt::set_tcp_keepcnt(&socket, KEEP_ALIVE_PROBES)?;
        socket.bind(address)?;
        socket.listen(BACKLOG)
    };
    open().map_err(|source| BindError::Io {
        step: "listen on",
        what: address.to_string(),
        source,
    })
}

/// Serves the kubelet's API over TLS until `until` resolves. Then followed logs are truncated, and
/// other responses get two seconds.
pub async fn serve_secure(
    listener: TcpListener,
    view: Arc<dyn NodeView>,
    parts: SecureParts,
    until: impl Future<Output = ()> + Send,
) {
    let port = Port {
        view,
        guard: PortSecurity::Secure {
            tls: Box::new(TlsConfigs::new(parts.tls, parts.certificate)),
            access: Box::new(parts.access),
        },
        options: parts.options,
        observer: parts.observer,
        audit: parts.audit,
    };
    serve_port(listener, port, until).await;
}

/// Serves what needs no right (health, pods, metrics) in plain HTTP to anybody, until `until`
/// resolves.
pub async fn serve_read_only(
    listener: TcpListener,
    view: Arc<dyn NodeView>,
    observer: Arc<dyn RequestObserver>,
    until: impl Future<Output = ()> + Send,
) {
    let port = Port {
        view,
        guard: PortSecurity::Open,
        options: EndpointOptions::READ_ONLY,
        observer,
        audit: None,
    };
    serve_port(listener, port, until).await;
}

async fn serve_port(listener: TcpListener, port: Port, until: impl Future<Output = ()> + Send) {
    let limits = match port.guard {
        PortSecurity::Secure { .. } => SECURE,
        PortSecurity::Open => PLAIN,
    };
    let observer = Arc::clone(&port.observer);
    let connections = Connections::new(port.guard.server_type(), limits, observer);
    let port = Arc::new(port);
    let serve = |stream, peer, slot, stopped| {
        connection::connection((stream, peer), slot, Arc::clone(&port), stopped)
    };
    accept_loop(listener, connections, serve, until).await;
}
