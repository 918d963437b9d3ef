//! The CRI traits over a unix socket: a client for runtimes in another process and, behind the
//! feature `server`, the other end for any implementor of the traits.

mod channel;
mod client;
mod endpoint;
mod loader;
mod observer;
#[cfg(feature = "server")]
mod server;
mod status;

pub use client::CriClient;
pub use endpoint::EndpointError;
pub use observer::{CallObserver, IgnoreCalls};
pub use rubelet_cri::Timeouts;
#[cfg(feature = "server")]
pub use server::{serve, serve_loading};

/// The largest message either side takes, in bytes: the kubelet's limit. A list of some ten
/// thousand containers fits.
pub const MAX_MESSAGE_SIZE: usize = 16 * 1024 * 1024;
