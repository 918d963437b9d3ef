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
//! use std::{sync::Arc, time::Duration};
//!
//! use http::{Request, StatusCode};
//! use rubelet_cri::v1;
//! use rubelet_streaming::{ServeOptions, SessionTarget, upgrade};
//! # use async_trait::async_trait;
//! # use rubelet_cri::{CriError, CriErrorKind, CriResult};
//! # use rubelet_streaming::{PortDialer, RemoteProcess, Sessions};
//! #
//! # struct Runtime;
//! #
//! # fn absent(call: &'static str) -> CriError {
//! #     CriError::new(call, CriErrorKind::NotFound, "no such container")
//! # }
//! #
//! # #[async_trait]
//! # impl Sessions for Runtime {
//! #     async fn exec(&self, _: v1::ExecRequest) -> CriResult<RemoteProcess> {
//! #         Err(absent("Exec"))
//! #     }
//! #     async fn attach(&self, _: v1::AttachRequest) -> CriResult<RemoteProcess> {
//! #         Err(absent("Attach"))
//! #     }
//! #     async fn port_forward(&self, _: &str) -> CriResult<Arc<dyn PortDialer>> {
//! #         Err(absent("PortForward"))
//! #     }
//! # }
//! #
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // `Runtime` implements `Sessions`.
//! let target = || SessionTarget::Exec(v1::ExecRequest::default(), Arc::new(Runtime));
//! let options = || ServeOptions {
//!     idle_timeout: Duration::from_secs(4 * 60 * 60),
//!     shutdown: Box::pin(std::future::pending::<()>()),
//!     link: None,
//! };
//! let request = Request::post("/exec/default/web/main")
//!     .header("connection", "Upgrade")
//!     .header("upgrade", "SPDY/3.1")
//!     .header("x-stream-protocol-version", "v4.channel.k8s.io")
//!     .body(())?;
//! let answer = upgrade(request, target(), options()).await;
//! assert_eq!(answer.response.status(), StatusCode::SWITCHING_PROTOCOLS);
//! assert!(answer.session.is_some(), "runs once the response is sent");
//!
//! let plain = Request::get("/exec/default/web/main").body(())?;
//! let answer = upgrade(plain, target(), options()).await;
//! assert_eq!(answer.response.status(), StatusCode::BAD_REQUEST);
//! assert!(answer.session.is_none());
//! # Ok(())
//! # }
//! ```

mod agreed;
pub mod client;
mod ending;
mod fd;
mod idle;
mod inbound;
mod io;
mod link;
mod negotiate;
mod port_session;
mod process;
mod process_session;
mod proxy;
mod sessions;
mod socket;
pub mod spdy;
mod spdy_server;
mod status;
mod stream;
mod target;
#[cfg(test)]
mod tests;
mod token_server;
mod upgrade;
mod upgrade_response;
mod websocket;

pub use ending::PortsEnd;
pub use fd::{FdSink, FdSource};
pub use link::Link;
pub use negotiate::{wants_upgrade, websocket_protocols};
pub use process::{ExitFuture, RemoteProcess, Resize, SessionExit, StdStreams, TerminalSize};
pub use sessions::{PortDialer, Sessions};
pub use socket::SessionSocket;
pub use status::SessionFailed;
pub use stream::{Duplex, Sink, Source, copy};
pub use target::{ServeOptions, SessionKind, SessionTarget};
pub use token_server::{StreamingRequest, StreamingServer};
pub use upgrade::upgrade;
pub use upgrade_response::{SessionFuture, Upgrade};
