//! Observers of requests, such as metrics.

use std::time::Duration;

/// Called for each request when its answer's head is there, or when it failed.
///
/// Meant for `rest_client_requests_total{code, method, host}` and
/// `rest_client_request_duration_seconds{verb, host}`.
pub trait RequestObserver: Send + Sync + 'static {
    /// `method` is the HTTP method, `host` the server as the kubeconfig writes it, with port.
    /// `code` is the HTTP status; `None` (upstream's `<error>`) where there was no answer. `took`
    /// counts from the moment the request was allowed by the rate limit. Each retry is a request.
    ///
    /// Runs on the caller's task: it must not block.
    fn request_ended(&self, method: &'static str, host: &str, code: Option<u16>, took: Duration);
}

/// An observer that does nothing.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct IgnoreRequests;

impl RequestObserver for IgnoreRequests {
    fn request_ended(&self, _: &'static str, _: &str, _: Option<u16>, _: Duration) {}
}
