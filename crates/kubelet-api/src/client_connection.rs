//! A connection of a client, as the requests on it see it.

use std::sync::Arc;

use rubelet_audit::AuditedRequest;
use rubelet_http_core::{activity::Activity, peer::Peer, session::SessionSlot};
use rustls::pki_types::CertificateDer;

use super::observe::Observed;

/// What ends with a request: its metric, and its entry in the audit log.
pub(super) type Guards = (Observed, Option<AuditedRequest>);

/// Facts about a connection.
pub(super) struct Connection {
    /// The certificates that the client sent: its own first.
    pub(super) certificates: Vec<CertificateDer<'static>>,
    pub(super) activity: Arc<Activity>,
    pub(super) peer: Peer,
    /// Maximum size of a request head in bytes.
    pub(super) longest_head: usize,
    /// The session that the connection becomes.
    pub(super) session: SessionSlot<Guards>,
}
