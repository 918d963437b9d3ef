//! Events of a path check.

use serde::{Deserialize, Serialize};

use crate::check::Finding;

/// One report. As JSON it is an object whose field `event` is its kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "camelCase")]
pub enum PathEvent {
    /// An interface on the way, in the order of the requests.
    Point {
        /// Its name, with what it is.
        name: String,
        /// Requests that passed it.
        requests: u64,
        /// Replies that passed it.
        replies: u64,
    },
    /// The location where packets stop.
    Result {
        /// The result.
        #[serde(flatten)]
        finding: Finding,
    },
}
