//! The CRI through a socket, call by call: each with success, with something that isn't there, in a
//! state that doesn't fit, twice, and at the same time as others.
//!
//! The same tests run on containerd, which is the model, and on `rubelet runtime serve`. Where both
//! differ, the test says why.

#![allow(
    clippy::unwrap_used,
    reason = "what fails in a test says so by its place"
)]

#[path = "../outside/outside.rs"]
mod outside;

mod cdi;
mod containers;
mod crictl;
mod declared_volumes;
mod events;
mod exec;
mod image_volumes;
mod images;
mod inside;
mod isolation;
mod logs;
mod network;
mod pulls;
mod refusals;
mod resources;
mod restart;
mod sandboxes;
mod service;
mod sockets32;
mod stats;
mod stdio;
mod stop;
mod streaming;
mod subject;
mod users;
