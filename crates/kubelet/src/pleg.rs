//! The Pod Lifecycle Event Generator: the only writer of observed state.
//!
//! - [`PlegHandle`] is what others hold: they mark pods dirty, learn of new identifiers, and wait
//!   for an observation that began after a point in this process's order.
//! - [`PlegTask`] runs the inspections, one at a time for each pod, and the periodic relist.
//!
//! The sequence rule: an inspection takes its number before its first call. A cause of change
//! takes its number when it happened. An observation is fresh for whoever asks if its number is
//! larger than that of their last step. Arrival order, age and wall clocks play no part.

mod begin;
mod cadence;
mod cause;
mod cell;
mod convert;
mod counts;
mod echo;
mod fingerprint;
mod handle;
mod health;
mod index;
mod inspect;
mod kernel;
mod lane;
mod late_reason;
mod lifecycle;
mod missed;
pub(crate) mod places;
mod publish;
mod rechecks;
mod record;
mod relist;
mod remembered;
mod slow;
mod stream;
mod task;
mod termination_message;
mod turn;

pub use cause::{Cause, event_name};
pub use cell::Observation;
pub use handle::{PlegHandle, Quarantine, RelistState, RuntimePod};
pub use kernel::REST;
pub use lifecycle::LifecycleKind;
pub use record::{LifecycleEvent, LifecycleRecord};
pub use remembered::RuntimeIds;
pub use task::{PlegSettings, PlegTask};

#[cfg(test)]
pub(crate) mod trace;

#[cfg(test)]
mod tests;
