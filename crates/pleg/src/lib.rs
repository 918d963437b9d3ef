//! The Pod Lifecycle Event Generator: the only writer of observed state.
//!
//! - [`PlegHandle`] is what others hold: they mark pods dirty, learn of new identifiers, and wait
//!   for an observation that began after a point in this process's order.
//! - [`PlegTask`] runs the inspections, one at a time for each pod, and the periodic relist.
//!
//! The sequence rule: an inspection takes its number before its first call. A cause of change takes
//! its number when it happens. An observation is fresh for a caller if its number is larger than
//! that of the caller's last step. Arrival order, age and wall clocks play no part.
//!
//! It never decides what is done about a pod, and makes no call that changes anything. On a model runtime that has no
//! pods yet:
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

mod cadence;
mod cause;
mod convert;
mod counts;
mod fingerprint;
mod handle;
mod health;
mod index;
mod inspect;
mod inspection_end;
mod inspection_queue;
mod inspection_slots;
mod inspection_start;
mod inspection_state;
mod kernel;
mod kernel_marks;
mod late_reason;
mod lifecycle;
mod listing;
mod missed_changes;
mod observation;
pub mod processes;
mod rechecks;
mod record;
mod relist;
mod runtime_ids;
mod slow;
mod start_events;
mod stream;
mod task;
mod termination_message;
pub mod trace;
mod tracked_pod;

pub use cause::{Cause, event_name};
pub use handle::{PlegHandle, Quarantine, RelistState, RuntimePod};
pub use inspection_slots::{AT_ONCE, QUICK_AT_ONCE};
pub use kernel::PID_QUERY_IDLE;
pub use lifecycle::LifecycleKind;
pub use observation::Observation;
pub use record::{LifecycleEvent, LifecycleRecord};
pub use runtime_ids::RuntimeIds;
pub use task::{PlegSettings, PlegTask};

#[cfg(test)]
mod tests;
