//! Counts requests: those to the agent's ports, and those to the API server.

use std::{sync::Arc, time::Duration};

use rubelet_audit::AuditObserver;
use rubelet_cluster::status::StatusMetrics;
use rubelet_kubelet_api::{RequestLabels, RequestObserver};
use rubelet_node_state::metrics::{HttpLabels, NodeMetrics};
use rubelet_server::{ConnectionObserver, RefusalReason};

/// Counts into the node's metrics.
pub(super) struct CountRequests(Arc<NodeMetrics>);

impl CountRequests {
    pub(super) fn new(metrics: Arc<NodeMetrics>) -> Self {
        Self(metrics)
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
        self.0.http.connection_refused(listener, reason.as_str());
    }
}

impl AuditObserver for CountRequests {
    fn written(&self, events: u64) {
        self.0.http.audit_written(events);
    }

    fn dropped(&self, reason: &'static str, events: u64) {
        self.0.http.audit_dropped(reason, events);
    }
}

impl RequestObserver for CountRequests {
    fn began(&self, request: &RequestLabels) {
        self.0.http.began(&labels(request));
    }

    fn answered(&self, request: &RequestLabels, code: u16) {
        self.0.http.answered(&labels(request), code);
    }

    fn ended(&self, request: &RequestLabels, took: Duration) {
        self.0.http.ended(&labels(request), took);
    }

    fn websocket(&self, subresource: &'static str) {
        self.0.http.websocket(subresource);
    }

    fn handshake_failed(&self) {
        self.0.http.handshake_failed();
    }
}

impl rubelet_kube::RequestObserver for CountRequests {
    fn request_ended(&self, method: &'static str, host: &str, code: Option<u16>, took: Duration) {
        self.0.api.request_ended(method, host, code, took);
    }
}

impl StatusMetrics for CountRequests {
    fn sent(&self, lag: Duration) {
        self.0.api.status_sent(lag);
    }

    fn synced(&self, took: Duration) {
        self.0.api.status_synced(took);
    }
}
