//! The built-in bridge with real packets, in network namespaces made by the tests: nothing of the host
//! is touched. They need root.

mod addresses;
mod faults;
mod host_ports;
mod many;
mod traffic;
mod world;
