//! SPDY/3.1 as Kubernetes uses it: many streams on one connection, without flow control.
//!
//! [`frame`] and [`header_block`] are pure: bytes in, frames out. `connection` reads and writes
//! them. See <https://www.chromium.org/spdy/spdy-protocol/spdy-protocol-draft3-1/>. Clients and
//! servers of Kubernetes ignore SETTINGS and WINDOW_UPDATE, so that TCP is the only flow control;
//! the same holds here.

pub(crate) mod connection;
mod dictionary;
pub mod frame;
#[cfg(test)]
mod golden;
pub(crate) mod handle;
pub mod header_block;
mod outgoing;
mod reader;
pub(crate) mod stream;
#[cfg(test)]
mod tests;
