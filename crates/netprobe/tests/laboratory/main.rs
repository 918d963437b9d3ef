//! Ping and trace in a laboratory of network namespaces that the tests make: chains of routers, links
//! that lose, repeat, reorder and forge, filters, several ways. Nothing of the host is touched: a
//! namespace ends with its descriptor. They need root.
//!
//! Links are impaired by a relay in this process rather than by the kernel's netem, which many kernels
//! lack: it knows exactly what it did to which packet.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test that can't go on fails"
)]

mod check;
mod hostile;
mod path;
mod peers;
mod ping;
mod relay;
mod trace;
mod world;
