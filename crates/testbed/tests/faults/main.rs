//! The embedded runtime when something goes wrong: each fault ends in the state before or after what
//! was asked for, and nothing leaks: no mount, cgroup, network namespace, interface, address, process.

#![allow(
    clippy::unwrap_used,
    reason = "what fails in a test says so by its place"
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
