//! The record of requests, responses and violations.

mod nulls;
mod transitions;

use std::{
    collections::{BTreeMap, VecDeque},
    fmt,
    sync::Arc,
    time::Duration,
};

use jiff::Timestamp;
use serde_json::Value;

pub(crate) use self::{nulls::written_null, transitions::backward_transitions};

/// One request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestRecord {
    /// Time since the server was created, when the response was ready; for a watch, when it began.
    pub at: Duration,
    /// The same on the server's wall clock.
    pub time: Timestamp,
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete` or `deletecollection`.
    pub verb: &'static str,
    /// `pods`, `pods/status`, or a non-resource path.
    pub resource: String,
    /// The namespace; empty for none.
    pub namespace: String,
    /// The object's name; empty for none.
    pub name: String,
    /// Path and query.
    pub path: String,
    /// The user's name.
    pub user: String,
    /// The status code of the response; 0 if there was none.
    pub code: u16,
    /// The injected fault, if any.
    pub fault: Option<String>,
}

/// A violation of an invariant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Time since the server was created.
    pub at: Duration,
    /// `namespace/name` of the pod or other object.
    pub pod: String,
    /// Its UID.
    pub uid: String,
    /// What happened.
    pub what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:?} {} ({}): {}",
            self.at, self.pod, self.uid, self.what
        )
    }
}

/// Called before a node removes a pod; returns the violation, if there is one.
pub(crate) type DeleteHook = Arc<dyn Fn(&Value) -> Option<String> + Send + Sync>;

/// Number of requests by verb, resource and status code.
pub type Counts = BTreeMap<(&'static str, String, u16), u64>;

/// The record.
pub(crate) struct Oracle {
    requests: VecDeque<RequestRecord>,
    remembered: usize,
    counts: Counts,
    violations: Vec<Violation>,
    pub(crate) delete_hook: Option<DeleteHook>,
}

impl Oracle {
    pub(crate) fn new(remembered: usize) -> Self {
        Self {
            requests: VecDeque::new(),
            remembered,
            counts: Counts::new(),
            violations: Vec::new(),
            delete_hook: None,
        }
    }

    pub(crate) fn record(&mut self, record: RequestRecord) {
        let key = (record.verb, record.resource.clone(), record.code);
        *self.counts.entry(key).or_default() += 1;
        self.requests.push_back(record);
        while self.requests.len() > self.remembered {
            self.requests.pop_front();
        }
    }

    pub(crate) fn violated(&mut self, at: Duration, pod: &Value, what: String) {
        let violation = Violation {
            at,
            pod: format!("{}/{}", crate::meta::namespace(pod), crate::meta::name(pod)),
            uid: crate::meta::uid(pod).to_owned(),
            what,
        };
        tracing::warn!(%violation, "Invariant violated");
        self.violations.push(violation);
    }

    pub(crate) fn requests(&self) -> impl Iterator<Item = &RequestRecord> {
        self.requests.iter()
    }

    pub(crate) fn counts(&self) -> &Counts {
        &self.counts
    }

    pub(crate) fn violations(&self) -> &[Violation] {
        &self.violations
    }

    pub(crate) fn forget(&mut self) {
        self.requests.clear();
        self.counts.clear();
    }
}
