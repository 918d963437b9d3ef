//! A model CRI runtime in memory: what containerd answers, without containers.
//!
//! [`Sim`] implements both CRI traits. Time is tokio's, so that a test with paused time is
//! deterministic and takes no time. A test scripts what containers and pulls do ([`Behavior`],
//! [`Pull`]), injects faults ([`Fault`], [`Sim::hang`], [`Sim::set_down`]) and asks the
//! [`Oracle`], the ordered record of everything that happened, what came of it.
//!
//! Calls end by the deadlines of [`rubelet_cri::Timeouts`], as they do through the real client.

mod behavior;
mod call;
mod clock;
mod controls;
mod fault;
mod image_name;
mod oracle;
mod pull;
mod rpc;
mod sim;
mod state;
mod subject;

pub use behavior::{Behavior, Exec, Start};
pub use fault::{Fault, Hang};
pub use oracle::{CallRecord, Entry, ExecRecord, Instance, Oracle, Outcome, What};
pub use pull::Pull;
pub use sim::Sim;
pub use subject::Subject;
