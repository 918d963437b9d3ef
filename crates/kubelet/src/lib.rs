//! The kubelet's own work: pod sources become tasks; tasks compare the desired with the observed
//! state, and act. Each part observes, plans (in `pod-plan`, or in a `decide` module) and applies.
//!
//! | task | in | out |
//! |---|---|---|
//! | `pods::PodTable` | desired pods of the sources, relists | starts, updates and ends pod tasks |
//! | `pod_task::PodTask`, one per pod | control, observations | calls to the runtime, status on the [`pod_board`] |
//! | [`pleg::PlegTask`] | marks, the runtime | observations, relists |
//! | [`prober::ProberTask`] | probes that plans want to run | attempts, their outcomes, events |
//! | [`runtime_state::watch_runtime`] | the runtime's status | whether pods can be worked on |
//! | [`image_collection`] | the disk, images, containers, pods | removed images |
//! | [`log_rotation`] | statuses of running containers, sizes of logs | rotated logs |
//! | [`records::RecordWriter`] | status and history | one small file per pod |
//! | [`intents::IntentBoard`] | requests of operators | intents, one small file per pod |
//!
//! What others show of pods is on boards, which hold the current values and never overflow:
//!
//! ```
//! use rubelet_kubelet::board::Board;
//!
//! let board = Board::new();
//! board.set("web", "Pending");
//! board.set("web", "Running");
//! let (version, changes) = board.since(0);
//! assert_eq!(changes.len(), 1, "a reader that is late skips what is over");
//! assert_eq!(*changes[0].2, "Running");
//! assert!(board.since(version).1.is_empty());
//! ```

pub mod agent;
pub mod board;
pub mod clock;
pub mod cluster_view;
mod drain;
pub mod events;
pub mod heartbeat;
pub mod host;
mod host_ports;
pub mod image_access;
pub mod image_collection;
pub mod images;
pub mod intents;
pub mod keyring;
pub mod log_rotation;
pub mod metrics;
pub mod node_ips;
pub mod objects;
pub mod pleg;
pub mod pod_board;
pub mod pod_host;
mod pod_task;
mod pods;
pub mod prober;
pub mod processes;
mod quarantine;
mod record_index;
pub mod records;
mod releases;
pub mod runtime_state;
mod start_failure;
mod throttle;

use std::time::Duration;

use jiff::Timestamp;

/// `at` plus `by`; the end of time where that overflows.
pub(crate) fn after(at: Timestamp, by: Duration) -> Timestamp {
    rubelet_pod_plan::after(at, by)
}

#[cfg(test)]
mod tests;
