//! Where a packet stops on its way out of a pod: requests are looked for at each interface that they
//! should pass on this machine, and the rules that they meet are followed.
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
