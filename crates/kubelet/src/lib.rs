//! The kubelet's own work: pod sources become tasks, tasks compare what is wanted with what was
//! observed, and act. Each part observes, plans (in `pod-plan`, or in a `decide` module) and
//! applies.
//!
//! | task | in | out |
//! |---|---|---|
//! | [`pods::PodTable`] | what sources want, relists | starts, informs and ends pod tasks |
//! | [`pod_task::PodTask`], one per pod | control, observations | steps on the runtime, status on the board |
//! | [`pleg::PlegTask`] | marks, the runtime | observations, relists |
//! | [`prober::ProberTask`] | which probes plans want tried | attempts, their outcomes, events |
//! | [`runtime_state::watch_runtime`] | the runtime's status | whether pods can be worked on |
//! | [`records::RecordWriter`] | status and history | one small file per pod |
//! | [`intents::IntentBoard`] | what operators ask | intents, one small file per pod |

pub mod agent;
pub mod board;
pub mod clock;
pub mod cluster_view;
pub mod drain;
pub mod events;
pub mod heartbeat;
pub mod host;
pub mod image_access;
pub mod images;
pub mod intents;
pub mod keyring;
pub mod metrics;
pub mod node_ips;
pub mod objects;
pub mod pleg;
pub mod pod_host;
pub mod pod_task;
pub mod pods;
pub mod prober;
pub mod processes;
mod quarantine;
pub mod records;
pub mod runtime_state;
pub mod throttle;

use std::time::Duration;

use jiff::Timestamp;

/// `at` plus `by`; the end of time where that overflows.
pub(crate) fn after(at: Timestamp, by: Duration) -> Timestamp {
    rubelet_pod_plan::after(at, by)
}

#[cfg(test)]
mod tests;
