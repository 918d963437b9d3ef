//! The real client, through the proxy, against the model runtime on a socket.

#![allow(
    clippy::unwrap_used,
    reason = "what fails in a test says so by its place"
)]

mod calls;
mod connections;
mod events;
mod fixture;
mod lists;
