//! What users' machines have and test machines don't, in a virtual machine: cgroup version 2,
//! systemd, AppArmor, power cuts.

#![allow(
    clippy::unwrap_used,
    reason = "what fails in a test says so by its place"
)]

mod apparmor;
mod cluster;
mod containers;
mod cri;
mod guest;
mod host;
mod node;
mod pods;
mod power_cut;
