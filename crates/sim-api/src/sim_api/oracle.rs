//! Requests and violations.

use std::sync::Arc;

use serde_json::Value;

use super::SimApi;
use crate::oracle::{Counts, RequestRecord, Violation};

impl SimApi {
    /// The recorded requests, oldest first.
    #[must_use]
    pub fn requests(&self) -> Vec<RequestRecord> {
        self.shared.oracle().requests().cloned().collect()
    }

    /// Number of recorded requests that match.
    pub fn count(&self, wanted: impl Fn(&RequestRecord) -> bool) -> usize {
        let oracle = self.shared.oracle();
        oracle.requests().filter(|request| wanted(request)).count()
    }

    /// Number of requests by verb, resource and status code, since the start or
    /// [`SimApi::forget_requests`].
    #[must_use]
    pub fn request_counts(&self) -> Counts {
        self.shared.oracle().counts().clone()
    }

    /// Resets the counters.
    pub fn forget_requests(&self) {
        self.shared.oracle().forget();
    }

    /// Violations of invariants: statuses that went backwards, pods removed while they ran, nulls
    /// written by the agent.
    #[must_use]
    pub fn violations(&self) -> Vec<Violation> {
        self.shared.oracle().violations().to_vec()
    }

    /// Calls `hook` before a node removes a pod; its result is recorded as a violation.
    pub fn on_node_delete(&self, hook: impl Fn(&Value) -> Option<String> + Send + Sync + 'static) {
        self.shared.oracle().delete_hook = Some(Arc::new(hook));
    }
}
