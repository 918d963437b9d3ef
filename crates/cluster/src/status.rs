//! Statuses of pods go to the API server (kubelet: `pkg/kubelet/status`).
//!
//! | part | what it decides |
//! |---|---|
//! | `schedule` | which pod is next; one call for each pod, up to a limit for all |
//! | `decide` | patch, delete or nothing, for one pod |
//! | `merge` | our status over the API's copy: nothing of others is lost, nothing moves backwards |
//! | `patch` | the difference, as a strategic merge patch with the UID as a precondition |
//! | `known` | what was acknowledged and is not yet reported by the watch |
//!
//! The task follows two boards, that of the pods here and that of the API's copies, by their
//! versions. Only names of pods are queued: when a pod is next, its newest status is compared with
//! the newest copy. So a slow or absent API server costs no memory, and what is sent when it is
//! back is the newest. A change is sent at once, without batching.

mod conditions;
mod containers;
mod decide;
mod merge;
mod merge_context;
mod patch;
mod reopen_pause;
mod same;
mod schedule;
mod send;
mod sync_state;
mod task;
mod terminated;
#[cfg(test)]
mod tests;

use std::{net::IpAddr, sync::Arc, time::Duration};

use jiff::Timestamp;
use rubelet_api::wire::seconds;
use rubelet_kube::{Client, WatchReopener};
use rubelet_node_state::{clock::Clock, pod_board::PodBoard};
use serde_json::Value;
use tokio::sync::watch;

use self::send::StatusClient;
pub(crate) use self::send::{delete_now, path};
use crate::source::ApiPods;

/// Maximum number of concurrent calls. More would only wait at the client's rate limit,
/// with statuses that are no longer the newest when their turn comes.
const AT_ONCE: usize = 32;

/// Dependencies of the task.
pub struct StatusParts {
    /// The API server.
    pub client: Client,
    /// Opens the watch of the pods again, the one that reports the API server's copies.
    pub reopener: WatchReopener,
    /// The node's statuses of its pods.
    pub board: Arc<PodBoard>,
    /// The API server's copies of them.
    pub api: Arc<ApiPods>,
    /// The context that all statuses share; a change is sent for all pods.
    pub context: watch::Receiver<StatusContext>,
    /// Wall time.
    pub clock: Clock,
    /// Metrics of the durations.
    pub metrics: Arc<dyn StatusMetrics>,
}

/// The part of a status that does not come from its own pod.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StatusContext {
    /// Addresses of the node, the primary one first.
    pub host_ips: Arc<[IpAddr]>,
    /// The name of the runtime, such as `containerd`. Empty until it is known: until then no
    /// status with identifiers of containers is sent.
    pub runtime: Arc<str>,
}

/// Metrics of the durations.
pub trait StatusMetrics: Send + Sync + 'static {
    /// A status was sent; `waited` is the time since it changed on the board.
    fn sent(&self, lag: Duration);

    /// The API server accepted it; `took` is the time since it changed (`kubelet_pod_status_sync_duration_seconds`).
    fn synced(&self, took: Duration);
}

/// Counts nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct IgnoreDurations;

impl StatusMetrics for IgnoreDurations {
    fn sent(&self, _: Duration) {}

    fn synced(&self, _: Duration) {}
}

/// Writes the statuses of all pods to the API server, forever.
pub async fn run(parts: StatusParts) {
    let StatusParts {
        client,
        reopener,
        board,
        api,
        context,
        clock,
        metrics,
    } = parts;
    let client = StatusClient { client, reopener };
    let task = task::StatusTask::new(client, board, api, context, clock, metrics, AT_ONCE);
    task.run().await;
}

/// RFC 3339 in whole seconds, as the API server keeps times.
fn time(at: Timestamp) -> Value {
    seconds(at).into()
}
