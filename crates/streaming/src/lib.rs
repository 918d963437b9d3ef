//! Sessions with containers: exec, attach and port-forward over upgraded HTTP connections.
//!
//! [`upgrade`] answers a request for a session. It negotiates a protocol with the client (SPDY/3.1,
//! or a WebSocket with channels), and returns the session as a future, to be run once the response
//! is sent. The other end is a [`SessionTarget`]: a runtime in this process ([`Sessions`]), or the
//! URL of another runtime's streaming server. [`StreamingServer`] is such a server, with one-time
//! tokens.
//!
//! Streams of any kind are [`Source`]s and [`Sink`]s; a [`RemoteProcess`] is a set of them. The
//! client side of SPDY ([`client`]) serves the commands, and connections to other runtimes.
//!
//! This crate never authorizes sessions, and never starts a process itself.
//!
//! ```
//! use rubelet_streaming::TerminalSize;
//!
//! let size: TerminalSize = serde_json::from_str(r#"{"Width": 80, "Height": 24}"#)?;
//! assert_eq!((size.width, size.height), (80, 24));
//! # Ok::<(), serde_json::Error>(())
//! ```

mod agreed;
pub mod client;
mod fd;
mod inbound;
mod io;
mod negotiate;
mod port_session;
mod process;
mod process_session;
mod proxy;
mod sessions;
pub mod spdy;
mod spdy_server;
mod status;
mod stream;
mod target;
#[cfg(test)]
mod tests;
mod token_server;
mod upgrade;
mod websocket;

pub use fd::{FdSink, FdSource};
pub use negotiate::{wants_upgrade, websocket_protocols};
pub use process::{ExitFuture, RemoteProcess, Resize, SessionExit, StdStreams, TerminalSize};
pub use sessions::{PortDialer, Sessions};
pub use status::SessionFailed;
pub use stream::{Duplex, Sink, Source, copy};
pub use target::{ServeOptions, SessionKind, SessionTarget};
pub use token_server::{StreamingRequest, StreamingServer};
pub use upgrade::{SessionFuture, Upgrade, upgrade};
