//! Client of the API server: kubeconfig, requests, watches, certificates.
//!
//! - [`kubeconfig`] reads the file and makes a [`ClientConfig`] of it.
//! - [`Client`] sends requests. Clones share connections, credentials and the rate limit. Requests
//!   and watches have connections of their own, so that a watch that is not read never delays a
//!   lease. HTTP/2 where the server offers it, else HTTP/1.1.
//! - [`Watcher`] lists and watches one collection and retries forever.
//! - [`UnreadableObjects`] lists fields of the API server's objects that could not be decoded.
//! - [`ClientIdentity`] holds the client certificate that may be replaced at any time.
//!
//! Tasks: one for each connection, spawned by the dial and ended by the last stream. A [`Watcher`]
//! has none: it works while its owner waits in [`Watcher::next`].
//!
//! Does not interpret objects: decoding is up to the caller.
//!
//! ```
//! use std::path::Path;
//!
//! use rubelet_kube::kubeconfig::Kubeconfig;
//!
//! let text = "
//! apiVersion: v1
//! kind: Config
//! current-context: node
//! contexts: [{name: node, context: {cluster: home, user: node-1}}]
//! clusters: [{name: home, cluster: {server: 'http://127.0.0.1:8080'}}]
//! users: [{name: node-1, user: {token: abc}}]";
//! let file = Kubeconfig::parse(text, Path::new("/etc/rubelet/kubeconfig")).expect("a kubeconfig");
//! let config = file.client_config(None).expect("a current context");
//! assert_eq!(config.server.to_string(), "http://127.0.0.1:8080");
//! ```

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
mod response;
mod secret;
mod server_url;
#[cfg(test)]
mod test_server;
mod transport;
mod unreadable;
mod watch;

pub use client::{Client, ClientError, PatchKind};
pub use config::{
    ClientConfig, Connector, Credential, ExecPlugin, ExecVersion, IdentitySource, Proxy, Roots,
    Stream,
};
pub use credentials::{CredentialError, ExecPluginError};
pub use error::{ApiError, BodyError};
pub use identity::{ClientIdentity, IdentityError};
pub use limit::TokenBucket;
pub use object::Object;
pub use observer::RequestObserver;
pub use options::ClientOptions;
pub use secret::Secret;
pub use server_url::{ServerUrl, ServerUrlError};
pub use transport::{ProxyConnectError, RootsError, TransportError};
pub use unreadable::{ObjectName, UnreadableObject, UnreadableObjects};
pub use watch::{Change, WatchReopener, WatchTarget, Watcher};
