//! The Pod Lifecycle Event Generator: the only writer of observed state.
//!
//! - [`PlegHandle`] is what others hold: they mark pods dirty, learn of new identifiers, and wait
//!   for an observation that began after a point in this process's order.
//! - [`PlegTask`] runs the inspections, one at a time for each pod, and the periodic relist.
//!
//! The sequence rule: an inspection takes its number before its first call. A cause of change takes
//! its number when it happens. An observation is fresh for a caller if its number is larger than
//! that of the caller's last step. Arrival order, age and wall clocks play no part.

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
pub(crate) mod inspection_slots;
mod inspection_start;
mod inspection_state;
mod kernel;
mod kernel_marks;
mod late_reason;
mod lifecycle;
mod listing;
mod missed_changes;
mod observation;
mod rechecks;
mod record;
mod relist;
mod runtime_ids;
mod slow;
mod start_events;
mod stream;
mod task;
mod termination_message;
mod tracked_pod;

pub use cause::{Cause, event_name};
pub use handle::{PlegHandle, Quarantine, RelistState, RuntimePod};
pub use kernel::PID_QUERY_IDLE;
pub use lifecycle::LifecycleKind;
pub use observation::Observation;
pub use record::{LifecycleEvent, LifecycleRecord};
pub use runtime_ids::RuntimeIds;
pub use task::{PlegSettings, PlegTask};

#[cfg(test)]
pub(crate) mod trace;

#[cfg(test)]
mod tests;
