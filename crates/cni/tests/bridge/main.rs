//! The built-in bridge with real packets, in network namespaces made by the tests: nothing of the host
//! is touched. They need root.

#![allow(
    clippy::unwrap_used,
    clippy::needless_pass_by_value,
    clippy::print_stdout,
    reason = "a test that can't go on fails"
)]

mod addresses;
mod faults;
mod host_ports;
mod many;
mod traffic;
mod world;
