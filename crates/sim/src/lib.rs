//! A model CRI runtime in memory that responds as containerd does, without containers.
//!
//! [`Sim`] implements both CRI traits. Time is tokio's, so that a test with paused time is
//! deterministic and takes no time. A test scripts what containers and pulls do ([`Behavior`],
//! [`Pull`]), injects faults ([`Fault`], [`Sim::hang`], [`Sim::set_down`]) and queries the
//! [`Oracle`], the ordered record of everything that happened.
//!
//! Events are emitted as by containerd 2.x, or by another runtime ([`EventFlavour`]), with faults
//! on request ([`EventFault`], [`Sim::inject_random_event_faults`]).
//!
//! It never starts a process, opens a socket or reads a file, and no product code uses it.
//!
//! ```
//! use std::time::Duration;
//!
//! use rubelet_cri::v1;
//! use rubelet_sim::{Behavior, Sim};
//!
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() {
//! let sim = Sim::new();
//! sim.on_image("job", Behavior::exits(Duration::from_secs(5), 3));
//! let version = sim.runtime().version(v1::VersionRequest::default()).await;
//! assert_eq!(version.expect("the runtime is up").runtime_name, "rubelet-sim");
//! # }
//! ```
//!
//! Calls end by the deadlines of [`rubelet_cri::Timeouts`], as they do through the real client.

mod behavior;
mod call;
mod clock;
mod controls;
mod event;
mod fault;
mod hang;
mod image_name;
mod oracle;
mod pull;
mod rpc;
mod sim;
mod state;
mod subject;
mod wait;

pub use behavior::{Behavior, Exec, Start};
pub use event::{EventFault, EventFlavour, EventOdds};
pub use fault::{Fault, ListFault};
pub use hang::Hang;
pub use oracle::{CallOutcome, CallRecord, Entry, EntryKind, ExecRecord, Instance, Oracle};
pub use pull::Pull;
pub use sim::Sim;
pub use subject::Subject;
