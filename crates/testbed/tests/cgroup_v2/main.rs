//! Cgroup version 2, which users run and test machines don't: in a virtual machine.

#![allow(
    clippy::unwrap_used,
    reason = "what fails in a test says so by its place"
)]

mod containers;
mod guest;
mod host;
mod pods;
