//! The body of an answer, and the connection that it keeps busy.

use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::{
    body::{Body as _, Incoming},
    client::conn::http1::SendRequest,
};

use super::{IdleHttp1, http2::StreamGuard};

/// The body of an answer. Dropped before its end, it ends the stream.
pub(crate) struct ResponseBody {
    incoming: Incoming,
    _stream: Option<StreamGuard>,
    connection: Option<(SendRequest<Full<Bytes>>, Arc<IdleHttp1>)>,
}

impl ResponseBody {
    pub(super) fn http2(incoming: Incoming, stream: StreamGuard) -> Self {
        Self {
            incoming,
            _stream: Some(stream),
            connection: None,
        }
    }

    pub(super) fn http1(
        incoming: Incoming,
        sender: SendRequest<Full<Bytes>>,
        idle: Arc<IdleHttp1>,
    ) -> Self {
        let mut body = Self {
            incoming,
            _stream: None,
            connection: Some((sender, idle)),
        };
        if body.incoming.is_end_stream() {
            body.ended();
        }
        body
    }

    /// The length, if the server announced it.
    pub(crate) fn announced(&self) -> Option<u64> {
        self.incoming.size_hint().exact()
    }

    /// The next bytes; `None` at the end. May be dropped while waiting: nothing is lost.
    pub(crate) async fn chunk(&mut self) -> Option<Result<Bytes, hyper::Error>> {
        loop {
            match self.incoming.frame().await {
                None => {
                    self.ended();
                    return None;
                }
                Some(Err(error)) => return Some(Err(error)),
                Some(Ok(frame)) => {
                    if let Ok(bytes) = frame.into_data() {
                        return Some(Ok(bytes));
                    }
                }
            }
        }
    }

    fn ended(&mut self) {
        if let Some((sender, idle)) = self.connection.take() {
            idle.give(sender);
        }
    }
}
