//! Request metrics.

use std::{sync::Arc, time::Duration};

use http::Method;
use rubelet_http_core::connections::ConnectionObserver;
use tokio::time::Instant;

use super::path::CleanPath;

/// The labels of request metrics: those of upstream's `kubelet_http_requests_total`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RequestLabels {
    /// The method, or `other`.
    pub method: &'static str,
    /// The first part of the path, or `other`.
    pub path: &'static str,
    /// `readwrite` on the secure port, `readonly` on the plain one.
    pub server_type: &'static str,
    /// Whether it is a long-running request.
    pub long_running: bool,
}

/// Counts requests. Called from the tasks of connections: must not wait.
pub trait RequestObserver: ConnectionObserver {
    /// A request has arrived.
    fn began(&self, labels: &RequestLabels);
    /// Its response begins, with this status code. Refusals are 401, 403 and 500.
    fn answered(&self, labels: &RequestLabels, code: u16);
    /// The response is complete or aborted; `took` is the time since the request.
    fn ended(&self, labels: &RequestLabels, took: Duration);
    /// A session over a WebSocket of the newest protocol begins; `subresource` is `exec`, `attach` or
    /// `portforward`.
    fn websocket(&self, subresource: &'static str);
    /// A client and the port could not agree on TLS.
    fn handshake_failed(&self);
}

const METHODS: &[&str] = &[
    "OPTIONS", "GET", "HEAD", "POST", "PUT", "DELETE", "TRACE", "CONNECT",
];

const PATHS: &[&str] = &[
    "attach",
    "checkpoint",
    "configz",
    "containerLogs",
    "debug",
    "exec",
    "flagz",
    "healthz",
    "logs",
    "metrics",
    "metrics/cadvisor",
    "metrics/probes",
    "metrics/resource",
    "pods",
    "portForward",
    "run",
    "runningpods",
    "stats",
    "statusz",
];

/// Upstream compares with `portforward`, which no path ever is.
const LONG_RUNNING: &[&str] = &["exec", "attach", "debug"];

impl RequestLabels {
    pub(super) fn of(method: &Method, path: Option<&CleanPath>, server_type: &'static str) -> Self {
        let known = |list: &[&'static str], name: &str| {
            let mut known = list.iter();
            known.find(|known| **known == name).copied()
        };
        let segments = path.map(CleanPath::segments).unwrap_or_default();
        let path = match segments.as_slice() {
            ["metrics", which, ..] => known(PATHS, &format!("metrics/{which}")),
            [root, ..] => known(PATHS, root),
            [] => None,
        };
        let path = path.unwrap_or("other");
        Self {
            method: known(METHODS, method.as_str()).unwrap_or("other"),
            path,
            server_type,
            long_running: LONG_RUNNING.contains(&path),
        }
    }
}

/// A request in progress; it ends when this is dropped.
pub(super) struct Observed {
    observer: Arc<dyn RequestObserver>,
    labels: RequestLabels,
    began: Instant,
}

impl Observed {
    pub(super) fn new(observer: Arc<dyn RequestObserver>, labels: RequestLabels) -> Self {
        observer.began(&labels);
        Self {
            observer,
            labels,
            began: Instant::now(),
        }
    }

    pub(super) fn answered(&self, code: u16) {
        self.observer.answered(&self.labels, code);
    }
}

impl Drop for Observed {
    fn drop(&mut self) {
        self.observer.ended(&self.labels, self.began.elapsed());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_distinguished_as_the_kubelet_does() {
        let labels = |method: &str, path: &str| {
            let path = CleanPath::read(path);
            let method = Method::from_bytes(method.as_bytes()).unwrap();
            let labels = RequestLabels::of(&method, path.as_ref(), "readwrite");
            (labels.method, labels.path, labels.long_running)
        };
        for (method, path, expected) in [
            ("GET", "/pods/", ("GET", "pods", false)),
            ("GET", "/metrics", ("GET", "metrics", false)),
            ("GET", "/metrics/probes", ("GET", "metrics/probes", false)),
            ("GET", "/metrics/x", ("GET", "other", false)),
            (
                "GET",
                "/containerLogs/a/b/c",
                ("GET", "containerLogs", false),
            ),
            ("POST", "/exec/a/b/c", ("POST", "exec", true)),
            ("POST", "/portForward/a/b", ("POST", "portForward", false)),
            ("PATCH", "/x", ("other", "other", false)),
            ("BREW", "/", ("other", "other", false)),
            ("GET", "//pods", ("GET", "other", false)),
        ] {
            assert_eq!(labels(method, path), expected, "{method} {path}");
        }
    }
}
