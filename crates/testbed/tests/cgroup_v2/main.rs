//! Tests in a virtual machine of what test machines lack: cgroup version 2, systemd and logind,
//! AppArmor, project quotas, power cuts.

#![allow(
    clippy::unwrap_used,
    reason = "the location of a failure says which check failed"
)]

mod apparmor;
mod cluster;
mod containers;
mod cri;
mod guest;
mod guest_setup;
mod host;
mod more_suites;
mod node;
mod pods;
mod power_cut;
mod quota;
mod shutdown;
mod slices;
mod suites;
mod watch;
