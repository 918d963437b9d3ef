//! What was asked, and what went wrong.

use std::sync::Arc;

use serde_json::Value;

use super::SimApi;
use crate::oracle::{Counts, RequestRecord, Violation};

impl SimApi {
    /// The requests that are remembered, oldest first.
    #[must_use]
    pub fn requests(&self) -> Vec<RequestRecord> {
        self.shared.oracle().requests().cloned().collect()
    }

    /// How many of the remembered requests are such.
    pub fn count(&self, wanted: impl Fn(&RequestRecord) -> bool) -> usize {
        let oracle = self.shared.oracle();
        oracle.requests().filter(|request| wanted(request)).count()
    }

    /// How often each verb, resource and status code came, since the start or [`SimApi::forget_requests`].
    #[must_use]
    pub fn request_counts(&self) -> Counts {
        self.shared.oracle().counts().clone()
    }

    /// Resets the counters.
    pub fn forget_requests(&self) {
        self.shared.oracle().forget();
    }

    /// What happened that must not: statuses that moved backwards, pods removed while they ran,
    /// nulls written by the agent.
    #[must_use]
    pub fn violations(&self) -> Vec<Violation> {
        self.shared.oracle().violations().to_vec()
    }

    /// Asks before a node removes a pod for good; an answer is recorded as a violation.
    pub fn on_node_delete(&self, hook: impl Fn(&Value) -> Option<String> + Send + Sync + 'static) {
        self.shared.oracle().delete_hook = Some(Arc::new(hook));
    }
}
