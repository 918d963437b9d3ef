//! The basis of tests, the demo and the benchmarks: a private runtime with its own images, agents
//! that run on it, and queries for the state of both.
//!
//! Everything that one instance creates is below one directory, `/tmp/rubelet-t…`, or has that
//! directory's name: its processes (by an environment variable), its cgroups, its CNI network and
//! its bridge. Clean-up finds resources by that name only, so that it also works for a killed run
//! ([`sweep()`]), and never touches resources of the host.
//!
//! - [`packages`] installs Debian packages and unpacks a containerd that runs here: the newest, or
//!   one of an older line
//! - [`Containerd`] is one private containerd; [`images`] builds its images; [`crio`] is a CRI-O, where there is one
//! - [`Embedded`] is the environment of the runtime embedded in `rubelet`, [`Served`] is one of
//!   those as a process of its own
//! - [`TestRuntime`] is the one that the environment selects
//! - [`Agent`] is one `rubelet run` on it
//! - [`Node`] is both together, for tests of pods; [`manifest`] builds pods and [`status`] reads
//!   them
//! - [`Cluster`] is what an agent can join: a model API server, or a control plane of real programs
//!   ([`api_server`])
//! - [`Registry`] serves an image to be pulled
//! - [`NoisyNeighbour`] keeps the machine busy beside what is tested or measured
//! - [`Vm`] is a virtual machine with cgroup version 2
//! - [`CriTruth`] queries the runtime's own state
//! - [`leftovers`] reports what is left after the end
//!
//! ```
//! use rubelet_testbed::manifest;
//! use serde_json::json;
//!
//! let pod = manifest::pod("web", &json!({ "containers": [manifest::waiting("main")] }));
//! assert_eq!(pod["spec"]["containers"][0]["name"], "main");
//! assert_eq!(pod["spec"]["terminationGracePeriodSeconds"], 1);
//! ```

pub mod absent;
pub mod agent;
pub mod api_server;
pub mod cgroup_driver;
pub mod cgroup_limits;
pub mod cleanup;
pub mod clock;
pub mod cluster;
pub mod command;
pub mod containerd;
pub mod cri_truth;
pub mod crio;
pub mod daemon;
pub mod disk;
pub mod embedded;
pub mod footprint;
pub mod http;
pub mod images;
pub mod manifest;
pub mod memory;
pub mod neighbour;
pub mod node;
pub mod packages;
pub mod pressure;
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
pub use cgroup_driver::CgroupDriver;
pub use cgroup_limits::CgroupLimits;
pub use cleanup::leftovers;
pub use cluster::Cluster;
pub use containerd::Containerd;
pub use cri_truth::CriTruth;
pub use embedded::{Embedded, Served};
pub use neighbour::NoisyNeighbour;
pub use node::Node;
pub use registry::Registry;
pub use runtime::TestRuntime;
pub use scratch::Scratch;
pub use sweep::sweep;
pub use vm::Vm;
