//! The Pod Lifecycle Event Generator: the only writer of observed state.
//!
//! - [`PlegHandle`] is the API for other tasks: it marks pods as changed, adds identifiers, and
//!   waits for an observation that began after a sequence number.
//! - [`PlegTask`] runs the inspections, at most one at a time for each pod, and the periodic
//!   relist.
//!
//! The sequence rule: an inspection takes its number before its first call. A cause of change takes
//! its number when it happens. An observation is fresh for a caller if its number is larger than
//! that of the caller's last step. Arrival order, age and wall clocks are irrelevant.
//!
//! PLEG decides nothing about pods, and makes no call that changes anything. On a model runtime
//! without pods:
//!
//! ```
//! use std::time::Duration;
//!
//! use rubelet_node_state::{clock::Clock, heartbeat::Heartbeat, metrics::NodeMetrics};
//! use rubelet_pleg::{PID_QUERY_IDLE, PlegSettings, PlegTask};
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

mod absorb;
mod cause;
mod convert;
mod counts;
mod fingerprint;
mod handle;
mod health;
mod index;
mod inspect;
mod inspection_end;
mod inspection_start;
mod kernel_exits;
mod kernel_oom_kills;
mod lifecycle;
mod listing;
mod missed_changes;
mod observation;
mod oom_reasons;
mod process_watcher;
pub mod processes;
mod queue;
mod rechecks;
mod record;
mod relist;
mod relist_schedule;
mod runtime_ids;
mod slow;
mod start_event_watchdog;
mod stream;
mod task;
mod termination_message;
pub mod trace;
mod tracked_pod;

pub use cause::InspectionCause;
pub use handle::{PlegHandle, Quarantine, RelistState, RuntimePod};
pub use lifecycle::LifecycleKind;
pub use observation::Observation;
pub use process_watcher::PID_QUERY_IDLE;
pub use queue::{FAST_SLOTS, MAX_INSPECTIONS};
pub use record::{LifecycleEvent, LifecycleRecord};
pub use runtime_ids::RuntimeIds;
pub use task::{PlegSettings, PlegTask};

#[cfg(test)]
mod tests;
