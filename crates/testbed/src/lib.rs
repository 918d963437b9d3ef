//! What tests, the demo and the benchmarks stand on: a private runtime with images of its own, agents
//! that run on it, and ways to ask both what they think is true.
//!
//! Everything one instance makes is below one folder, `/tmp/rubelet-t…`, or carries that folder's
//! name: its processes (by an environment variable), its cgroups, its CNI network and its bridge.
//! Cleaning up finds things by that name only, so that it also works for a run that was killed
//! ([`sweep`]), and so that it can never touch what belongs to the host.
//!
//! - [`packages`] installs Debian packages and unpacks a containerd that runs here: the newest, or
//!   one of an older line
//! - [`Containerd`] is one private containerd; [`images`] builds what it runs
//! - [`Embedded`] is the surroundings of a runtime inside of `rubelet`, [`Served`] is one of those
//!   as a process of its own
//! - [`TestRuntime`] is the one of both that the environment asks for
//! - [`Agent`] is one `rubelet run` on it
//! - [`Node`] is both together, for tests of pods; [`manifest`] makes pods and [`status`] reads them
//! - [`Cluster`] is what an agent can join: a model API server, or a control plane of real programs
//!   ([`api_server`])
//! - [`Registry`] serves an image to be pulled
//! - [`Vm`] is a virtual machine with cgroup version 2
//! - [`CriTruth`] counts what the runtime itself knows
//! - [`leftovers`] tells what is still there after the end

pub mod agent;
pub mod api_server;
pub mod cleanup;
pub mod clock;
pub mod cluster;
pub mod command;
pub mod containerd;
pub mod cri_truth;
pub mod embedded;
pub mod footprint;
pub mod http;
pub mod images;
pub mod manifest;
pub mod node;
pub mod packages;
pub mod proc;
pub mod registry;
mod report;
pub mod runtime;
pub mod scratch;
pub mod sockets32;
pub mod status;
#[cfg(target_arch = "x86_64")]
pub mod steps;
pub mod sweep;
pub mod target_dir;
pub mod vm;
pub mod wait;

pub use agent::Agent;
pub use api_server::ApiServer;
pub use cleanup::leftovers;
pub use cluster::Cluster;
pub use containerd::Containerd;
pub use cri_truth::CriTruth;
pub use embedded::{Embedded, Served};
pub use node::Node;
pub use registry::Registry;
pub use runtime::TestRuntime;
pub use scratch::Scratch;
pub use sweep::sweep;
pub use vm::Vm;
