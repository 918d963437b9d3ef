//! The way to the API server: kubeconfig, requests, watches, certificates.
//!
//! - [`kubeconfig`] reads the file and makes a [`ClientConfig`] of it.
//! - [`Client`] sends requests. Clones share connections, credentials and the rate limit. Requests
//!   and watches have connections of their own, so that a watch that nobody reads never delays a
//!   lease. HTTP/2 where the server offers it, else HTTP/1.1.
//! - [`Watcher`] lists and watches one collection and never gives up.
//! - [`UnreadObjects`] tells what of the API server's objects could not be read.
//! - [`ClientIdentity`] holds the client certificate that may be replaced at any time.
//!
//! Tasks: one for each connection, spawned by the dial and ended by the last stream. A [`Watcher`]
//! has none: it works while its owner waits in [`Watcher::next`].

mod answer;
pub mod certificates;
mod client;
pub mod clock;
mod config;
mod credentials;
mod error;
mod identity;
mod jitter;
pub mod kubeconfig;
mod limit;
mod object;
mod observer;
mod options;
mod secret;
mod server_url;
#[cfg(test)]
mod test_server;
mod transport;
mod unread;
mod watch;

pub use client::{Client, ClientError, PatchKind};
pub use config::{
    ClientConfig, Connector, Credential, ExecPlugin, ExecVersion, IdentitySource, Proxy, Roots,
    Stream,
};
pub use credentials::CredentialError;
pub use error::{ApiError, BodyError};
pub use identity::{ClientIdentity, IdentityError};
pub use limit::TokenBucket;
pub use object::Object;
pub use observer::{IgnoreRequests, RequestObserver};
pub use options::ClientOptions;
pub use secret::Secret;
pub use server_url::{ServerUrl, ServerUrlError};
pub use transport::{RootsError, TransportError};
pub use unread::{ObjectName, UnreadObject, UnreadObjects};
pub use watch::{Change, WatchTarget, Watcher};
