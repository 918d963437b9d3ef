//! Locates where packets stop on their way out of a pod: captures requests at each interface that
//! they should pass on this machine, and traces the rules that they meet.
//!
//! [`sighting`] recognizes the packets of a session, [`judge`] decides where they stop and why; both
//! are pure. [`run`] sends and looks, [`tracer`] follows the rules.

pub mod event;
pub mod judge;
pub mod run;
pub mod sighting;
pub mod tracer;

#[doc(inline)]
pub use self::{
    event::PathEvent,
    judge::LastHop,
    run::{PathInputs, PathPoint, follow},
};
