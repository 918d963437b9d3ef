//! Trace: the routers on the way to a target, by probes whose TTL is used up there.

pub mod driver;
pub mod event;
pub mod options;
pub mod prober;
pub mod run;
pub mod table;
pub mod text;

#[doc(inline)]
pub use self::{
    driver::{TraceTarget, trace},
    event::TraceEvent,
    options::{TraceMethod, TraceOptions},
};
