//! The CRI through a socket, call by call: success, missing objects, wrong states, repeated calls,
//! concurrent calls.
//!
//! The same tests run on containerd, the reference, and on `rubelet runtime serve`. Where these
//! differ, the test says why.

#![allow(
    clippy::unwrap_used,
    reason = "the location of a failure says which check failed"
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
