//! The real client, through the proxy, against the model runtime on a socket.

#![allow(
    clippy::unwrap_used,
    reason = "the location of a failure says which check failed"
)]

mod calls;
mod connections;
mod events;
mod fixture;
mod lists;
