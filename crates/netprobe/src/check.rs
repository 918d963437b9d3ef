//! The usual questions about a network, in the order in which one builds on the other: has it an
//! address, is the gateway there, does DNS answer, does it know a name, is a Service there, the API
//! server, the outside, and do long packets arrive.
//!
//! [`judge`] decides what the results mean and what to do; it is pure. [`run`] asks.

pub mod connect;
pub mod dns;
pub mod finding;
pub mod inputs;
pub mod judge;
pub mod run;

#[doc(inline)]
pub use self::{
    finding::{CheckEvent, CheckKind, CheckOutcome, Finding},
    inputs::{CheckInput, CheckInputs, CheckTarget, DefaultRoute, InterfaceState, SkipReason},
    run::check,
};
