//! A model CRI runtime in memory: what containerd answers, without containers.
//!
//! [`Sim`] implements both CRI traits. Time is tokio's, so that a test with paused time is
//! deterministic and takes no time. A test scripts what containers and pulls do ([`Behavior`],
//! [`Pull`]), injects faults ([`Fault`], [`Sim::hang`], [`Sim::set_down`]) and asks the
//! [`Oracle`], the ordered record of everything that happened, what came of it.
//!
//! Events are told as containerd 2.x tells them, or as another runtime does ([`EventFlavour`]), and go
//! wrong on request ([`EventFault`], [`Sim::rough_events`]).
//!
//! Calls end by the deadlines of [`rubelet_cri::Timeouts`], as they do through the real client.

mod behavior;
mod call;
mod clock;
mod controls;
mod event;
mod fault;
mod image_name;
mod list_fault;
mod oracle;
mod pull;
mod rpc;
mod sim;
mod state;
mod subject;

pub use behavior::{Behavior, Exec, Start};
pub use event::{EventFault, EventFlavour, EventOdds};
pub use fault::{Fault, Hang};
pub use list_fault::ListFault;
pub use oracle::{CallRecord, Entry, ExecRecord, Instance, Oracle, Outcome, What};
pub use pull::Pull;
pub use sim::Sim;
pub use subject::Subject;
