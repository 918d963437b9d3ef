//! The shim: the supervisor process of one pod, and its protocol.
//!
//! An agent starts one shim per pod sandbox ([`spawn`]) and calls it by the [`protocol`], over a
//! unix socket that passes file descriptors ([`wire`]); [`client`] is a blocking client. The shim
//! ([`main`]) has one thread and one epoll loop. It creates the pod's namespaces, starts containers
//! through an OCI runtime (the embedded or an external one), holds their standard streams, writes
//! their logs in the CRI's format, reaps processes, and writes each exit to a file
//! ([`exit_record`]). It keeps running when the agent exits; the next agent connects to the socket
//! in the shim's directory.
//!
//! It never decides what to run or when to restart: the agent does.
//!
//! A shim needs root for its namespaces and an agent's program to run in, so the example reads what
//! one leaves behind instead:
//!
//! ```
//! use rubelet_shim::exit_record;
//!
//! # fn main() -> std::io::Result<()> {
//! # let bundle = tempfile::tempdir()?;
//! // No shim has seen this container exit.
//! assert!(exit_record::read(bundle.path())?.is_none());
//! # Ok(())
//! # }
//! ```

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
