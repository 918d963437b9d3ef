//! The kubelet's own work: pod sources become tasks; tasks compare the desired with the observed
//! state, and act. Each part observes, plans (in `pod-plan`, or in a `decide` module) and applies.
//!
//! | task | in | out |
//! |---|---|---|
//! | `pods::PodTable` | desired pods of the sources, relists | starts, updates and ends pod tasks |
//! | `pod_task::PodTask`, one per pod | control, observations | calls to the runtime, status on the pod board |
//! | [`pleg::PlegTask`] | marks, the runtime | observations, relists |
//! | [`prober::ProberTask`] | probes that plans want to run | attempts, their outcomes, events |
//! | [`runtime_watch::watch_runtime`] | the runtime's status | whether pods can be worked on |
//! | [`image_collection`] | the disk, images, containers, pods | removed images |
//! | [`log_rotation`] | statuses of running containers, sizes of logs | rotated logs |
//! | [`records::RecordWriter`] | status and history | one small file per pod |
//!
//! What others show of pods is on the boards of `node-state`. [`agent`] puts the parts together. PLEG on a model
//! runtime that has no pods yet:
//!
//! ```
//! use std::time::Duration;
//!
//! use rubelet_kubelet::pleg::{PID_QUERY_IDLE, PlegSettings, PlegTask};
//! use rubelet_node_state::{clock::Clock, heartbeat::Heartbeat, metrics::NodeMetrics};
//! use rubelet_sim::Sim;
//!
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() {
//! let settings = PlegSettings {
//!     relist_period: Duration::from_secs(1),
//!     events: true,
//!     pid_query_idle: PID_QUERY_IDLE,
//! };
//! let (heartbeat, clock) = (Heartbeat::new(), Clock::system());
//! let runtime = Sim::new().runtime();
//! let (pleg, handle) =
//!     PlegTask::new(runtime, settings, None, heartbeat, clock, NodeMetrics::new());
//! tokio::spawn(pleg.run());
//! let mut relists = handle.relists();
//! relists.changed().await.expect("PLEG runs");
//! assert!(relists.borrow().pods.is_empty());
//! # }
//! ```

pub mod agent;
mod drain;
pub mod host;
mod host_ports;
pub mod image_access;
pub mod image_collection;
pub mod images;
pub mod log_rotation;
pub mod node_logins;
pub mod pleg;
pub mod pod_host;
mod pod_task;
mod pods;
pub mod prober;
pub mod processes;
mod quarantine;
pub mod records;
mod releases;
pub mod runtime_watch;
mod start_failure;
mod throttle;

#[cfg(test)]
mod tests;
