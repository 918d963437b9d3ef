//! The CRI traits over a unix socket: a client for runtimes in another process and, behind the
//! feature `server`, the other end for any implementor of the traits.
//!
//! The client never repeats a call and never interprets a response: whether a call is made again,
//! and what its result means, is up to the caller.
//!
//! ```no_run
//! use rubelet_cri::{RuntimeService, Timeouts, v1};
//! use rubelet_cri_grpc::CriClient;
//!
//! # async fn version() -> Result<(), Box<dyn std::error::Error>> {
//! let socket = "unix:///run/containerd/containerd.sock";
//! let client = CriClient::connect_lazy(socket, Timeouts::default())?;
//! let version = client.version(v1::VersionRequest::default()).await?;
//! println!("{} {}", version.runtime_name, version.runtime_version);
//! # Ok(())
//! # }
//! ```

mod channel;
mod client;
mod endpoint;
mod loader;
mod observer;
#[cfg(feature = "server")]
mod server;
mod status;

pub use client::CriClient;
pub use endpoint::{EndpointError, socket_path};
pub use observer::{CallObserver, IgnoreCalls};
pub use rubelet_cri::Timeouts;
#[cfg(feature = "server")]
pub use server::{serve, serve_loading};

/// Maximum size of a message in either direction, in bytes: the kubelet's limit. A list of some ten
/// thousand containers fits.
pub const MAX_MESSAGE_SIZE: usize = 16 * 1024 * 1024;
