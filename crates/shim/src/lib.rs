//! The supervisor of one pod's processes, and how an agent talks to it.
//!
//! An agent starts one shim per pod sandbox ([`spawn`]) and talks to it in the [`protocol`], over a
//! socket that file descriptors can be sent through ([`wire`]); [`client`] does so blocking. The shim
//! ([`main`]) has one thread and one epoll loop. It makes the pod's namespaces, starts containers
//! through an OCI runtime (its own or an external one), holds their standard streams, writes their
//! logs in the CRI's format, reaps, and keeps each exit in a file ([`exit_record`]). It goes on when
//! the agent ends; the next one connects to the socket in the shim's folder.

pub mod client;
mod clock;
pub mod exit_record;
pub mod log;
pub mod protocol;
mod runtime;
pub mod spawn;
mod supervisor;
pub mod wire;

pub use exit_record::ExitRecord;
pub use supervisor::main;
