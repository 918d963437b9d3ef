//! The answer to a request for a session.

use std::{future::Future, pin::Pin};

use bytes::Bytes;
use http::Response;

/// A session that runs until it is over, or the client or the runtime is gone. Dropping it closes the
/// connection at once.
pub type SessionFuture = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The answer to a request for a session.
pub struct Upgrade {
    /// `101 Switching Protocols`, or why not, as plain text.
    pub response: Response<Bytes>,
    /// The session; must be polled while and after the response is sent. `None` where it is refused.
    pub session: Option<SessionFuture>,
}
