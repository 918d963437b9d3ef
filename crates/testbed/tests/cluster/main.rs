//! The agent as a node of a cluster: a model API server, a real containerd, a real kubectl.

#![allow(
    clippy::unwrap_used,
    reason = "what fails in a test says so by its place"
)]

#[path = "../outside/outside.rs"]
mod outside;

mod away;
mod bootstrap;
mod faults;
mod joined;
mod mirrors;
mod pods;
mod port;
