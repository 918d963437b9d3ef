//! Actions on one pod, and their errors.

use serde_json::Value;

use crate::{Object, PodPatch};

/// A pod by namespace and name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodRef {
    /// `metadata.namespace`.
    pub namespace: String,
    /// `metadata.name`; a static pod's ends in the node's name.
    pub name: String,
}

/// An action on a pod. Answered once it is stored on disk; carried out afterwards.
#[derive(Debug, Clone)]
pub enum PodAction {
    /// Restart containers in place, without backoff. Answered with a document.
    Restart {
        /// Only this container; `None` means all that keep running.
        container: Option<String>,
    },
    /// Terminate the pod within this time, if it does not terminate sooner. Answered with the pod.
    Delete {
        /// Seconds from SIGTERM to SIGKILL; `None` leaves it to the pod.
        grace: Option<u64>,
    },
    /// Set conditions that are not the agent's own: see [`PodPatch::conditions`]. Answered with
    /// the pod.
    PatchStatus(PodPatch),
    /// Add ephemeral containers: see [`PodPatch::ephemeral_containers`]. Answered with the pod.
    AddEphemeral(PodPatch),
    /// Explain the state of the pod. Answered with a document.
    Why,
}

/// The result of an action.
#[derive(Debug, Clone)]
pub enum PodAnswer {
    /// The current pod.
    Pod(Object),
    /// A document; `apiVersion` and `kind` are filled in by the server.
    Document(Value),
}
