//! The agent as a node of a cluster: an API server, the model or a real one, and a real kubectl.

#![allow(
    clippy::unwrap_used,
    reason = "the location of a failure says which check failed"
)]

#[path = "../outside/outside.rs"]
mod outside;

mod away;
mod bootstrap;
mod controllers;
mod eviction;
mod images;
mod joined;
mod local_storage;
mod mirrors;
mod model;
mod net;
mod node_shutdown;
mod pods;
mod port;
mod preemption;
mod private_images;
mod pull_tokens;
mod sessions;
mod terminals;
