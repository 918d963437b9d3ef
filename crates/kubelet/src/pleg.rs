//! The Pod Lifecycle Event Generator: the only writer of observed state.
//!
//! - [`PlegHandle`] is what others hold: they mark pods dirty, learn of new identifiers, and wait
//!   for an observation that began after a point in this process's order.
//! - [`PlegTask`] runs the inspections, one at a time for each pod, and the periodic relist.
//!
//! The sequence rule: an inspection takes its number before its first call. A cause of change
//! takes its number when it happened. An observation is fresh for whoever asks if its number is
//! larger than that of their last step. Arrival order, age and wall clocks play no part.

mod cell;
mod convert;
mod handle;
mod inspect;
mod late_reason;
mod relist;
mod task;
mod termination_message;

pub use cell::Observation;
pub use handle::{PlegHandle, RelistState, RuntimePod};
pub use task::{PlegSettings, PlegTask};

#[cfg(test)]
mod tests;
