//! Attempts against real servers on the loopback device: what an operator reads in events.

mod broken;
mod grpc;
mod hooks;
mod http;
mod https;
mod redirects;
mod server;
mod sockets;
mod tcp;
