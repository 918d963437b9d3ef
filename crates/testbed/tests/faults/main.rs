//! The embedded runtime under faults: each fault leaves the state before or after the call, and
//! nothing leaks: no mount, cgroup, network namespace, interface, address, process.

#![allow(
    clippy::unwrap_used,
    reason = "the location of a failure says which check failed"
)]

#[path = "../cri/subject.rs"]
mod subject;

mod disk;
mod killed;
mod lab;
mod network;
mod records;
mod shim;
#[cfg(target_arch = "x86_64")]
mod steps;
mod volumes;
