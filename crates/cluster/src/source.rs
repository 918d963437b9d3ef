//! Pods of the API server: its state of each pod of this node, kept for all readers.
//!
//! - `read`: one pod from its JSON; pure.
//! - `state`: what a change of the watch means; pure.
//! - `start_progress`: how far a pod has started; pure.
//! - `task`: follows the watch and notifies the others.
//! - `stored`: the pods as they were known last, on disk, for a start without API server.
//! - [`admission_gate`]: which pods may start here.
//! - `readiness_gates`: conditions of others that a pod waits for.

pub mod admission_gate;
mod read;
mod readiness_gates;
mod resize;
mod start_progress;
mod state;
mod stored;
mod task;
#[cfg(test)]
mod tests;

pub use task::{SourceParts, UNCONFIRMED, run, unknown};

use std::sync::Arc;

use rubelet_api::{
    pod::{Deletion, Pod, StringMap},
    status::Phase,
};
use rubelet_base::{PodName, PodUid};
use rubelet_node_state::board::Board;

/// One pod of this node as the API server has it.
#[derive(Debug, Clone, PartialEq)]
pub struct ApiPod {
    /// `metadata.namespace` and `metadata.name`.
    pub name: PodName,
    /// `metadata.uid`.
    pub uid: PodUid,
    /// `metadata.resourceVersion`.
    pub resource_version: Box<str>,
    /// `metadata.labels`.
    pub labels: StringMap,
    /// The annotation `kubernetes.io/config.mirror` of a mirror pod: the hash of the
    /// manifest that it was made for.
    pub mirror: Option<Box<str>>,
    /// The annotation `kubernetes.io/config.hash`: which content of a manifest a mirror pod shows.
    pub config_hash: Option<Box<str>>,
    /// The deletion of the pod, if it was requested, and its deadline.
    pub deletion: Option<Deletion>,
    /// `status` as JSON, as the API server has it.
    pub status: Arc<str>,
    /// `status.phase`.
    pub phase: Option<Phase>,
    /// The pod to run; `None` for a mirror pod, which only shows the pod of a manifest.
    pub pod: Option<Arc<Pod>>,
    /// The pod that a mirror pod shows.
    pub shows: Option<Arc<Pod>>,
}

/// The API server's pods of this node, by UID.
pub type ApiPods = Board<PodUid, ApiPod>;
