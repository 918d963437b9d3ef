//! The built-in bridge with real packets, in network namespaces made by the tests: nothing of the host
//! is touched. They need root.

#![allow(
    clippy::unwrap_used,
    clippy::needless_pass_by_value,
    clippy::print_stdout,
    reason = "a test that can't go on fails"
)]

mod addresses;
mod advertisements;
mod faults;
mod firewall;
mod host_ports;
mod isolation;
mod loopback;
mod many;
mod netfilter;
mod packets;
mod senders;
mod traffic;
mod world;
