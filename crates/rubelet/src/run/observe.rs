//! Counts requests: those to the agent's ports, and those to the API server. Tells of the ends of
//! sessions.

use std::{sync::Arc, time::Duration};

use rubelet_audit::AuditObserver;
use rubelet_cluster::status::StatusMetrics;
use rubelet_kubelet_api::{RequestLabels, RequestObserver};
use rubelet_node_state::metrics::{HttpLabels, NodeMetrics};
use rubelet_server::{ConnectionObserver, RefusalReason};
use tokio::sync::watch;

/// Counts into the node's metrics.
pub(super) struct CountRequests {
    metrics: Arc<NodeMetrics>,
    /// The number of sessions that have ended.
    ended_sessions: watch::Sender<u64>,
}

impl CountRequests {
    pub(super) fn new(metrics: Arc<NodeMetrics>) -> Self {
        Self {
            metrics,
            ended_sessions: watch::Sender::new(0),
        }
    }

    /// Where it counts.
    pub(super) fn metrics(&self) -> &Arc<NodeMetrics> {
        &self.metrics
    }

    /// Changes whenever a session on one of its listeners ends.
    pub(super) fn ended_sessions(&self) -> watch::Receiver<u64> {
        self.ended_sessions.subscribe()
    }
}

fn labels(labels: &RequestLabels) -> HttpLabels {
    HttpLabels {
        method: labels.method,
        path: labels.path,
        server_type: labels.server_type,
        long_running: labels.long_running,
    }
}

impl ConnectionObserver for CountRequests {
    fn refused(&self, listener: &'static str, reason: RefusalReason) {
        self.metrics
            .http
            .connection_refused(listener, reason.as_str());
    }

    fn session_ended(&self) {
        self.ended_sessions.send_modify(|count| *count += 1);
    }
}

impl AuditObserver for CountRequests {
    fn written(&self, events: u64) {
        self.metrics.http.audit_written(events);
    }

    fn dropped(&self, reason: &'static str, events: u64) {
        self.metrics.http.audit_dropped(reason, events);
    }
}

impl RequestObserver for CountRequests {
    fn began(&self, request: &RequestLabels) {
        self.metrics.http.began(&labels(request));
    }

    fn answered(&self, request: &RequestLabels, code: u16) {
        self.metrics.http.answered(&labels(request), code);
    }

    fn ended(&self, request: &RequestLabels, took: Duration) {
        self.metrics.http.ended(&labels(request), took);
    }

    fn websocket(&self, subresource: &'static str) {
        self.metrics.http.websocket(subresource);
    }

    fn handshake_failed(&self) {
        self.metrics.http.handshake_failed();
    }
}

impl rubelet_kube::RequestObserver for CountRequests {
    fn request_ended(&self, method: &'static str, host: &str, code: Option<u16>, took: Duration) {
        self.metrics.api.request_ended(method, host, code, took);
    }
}

impl StatusMetrics for CountRequests {
    fn sent(&self, lag: Duration) {
        self.metrics.api.status_sent(lag);
    }

    fn synced(&self, took: Duration) {
        self.metrics.api.status_synced(took);
    }
}
