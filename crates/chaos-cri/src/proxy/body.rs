//! Bodies of responses: the runtime's, and generated ones.

use std::{
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Response, header};
use http_body_util::{BodyExt, Empty, Full, combinators::UnsyncBoxBody};
use hyper::body::{Frame, Incoming};
use tokio::sync::mpsc;

use crate::code::Code;

pub(super) type BoxError = Box<dyn std::error::Error + Send + Sync>;
pub(super) type Body = UnsyncBoxBody<Bytes, BoxError>;

/// The body of a runtime's response or of a client's request.
pub(super) fn from_incoming(body: Incoming) -> Body {
    body.map_err(BoxError::from).boxed_unsync()
}

/// An empty body.
pub(super) fn empty() -> Body {
    Empty::new()
        .map_err(|never: Infallible| match never {})
        .boxed_unsync()
}

/// A body of these bytes, with trailers if there are any.
pub(super) fn whole(bytes: Bytes, trailers: Option<HeaderMap>) -> Body {
    let full = Full::new(bytes);
    match trailers {
        Some(trailers) => full
            .with_trailers(async move { Some(Ok(trailers)) })
            .map_err(|never: Infallible| match never {})
            .boxed_unsync(),
        None => full
            .map_err(|never: Infallible| match never {})
            .boxed_unsync(),
    }
}

/// The stream was reset on purpose.
#[derive(Debug, thiserror::Error)]
#[error("reset by chaos-cri")]
pub(super) struct StreamReset;

/// A body that a task sends. Without trailers the stream ends without a status.
struct Channel(mpsc::Receiver<Result<Frame<Bytes>, BoxError>>);

pub(super) type Sender = mpsc::Sender<Result<Frame<Bytes>, BoxError>>;

/// A body with a buffer of one frame: the sender waits for the reader.
pub(super) fn channel() -> (Sender, Body) {
    let (sender, receiver) = mpsc::channel(1);
    (sender, Channel(receiver).boxed_unsync())
}

impl hyper::body::Body for Channel {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        self.0.poll_recv(cx)
    }
}

/// A response that consists of a status only.
pub(super) fn status(code: Code, message: &str) -> Response<Body> {
    let mut answer = Response::new(empty());
    let headers = answer.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/grpc"),
    );
    set_status(headers, code, message);
    answer
}

/// Trailers with the status OK.
pub(super) fn ok_trailers() -> HeaderMap {
    let mut trailers = HeaderMap::new();
    set_status(&mut trailers, Code(0), "");
    trailers
}

fn set_status(headers: &mut HeaderMap, code: Code, message: &str) {
    headers.insert("grpc-status", HeaderValue::from(u16::from(code.0)));
    if code.0 != 0
        && let Ok(message) = HeaderValue::from_str(&encoded(message))
    {
        headers.insert("grpc-message", message);
    }
}

/// Encodes a status message as gRPC requires: printable ASCII, other bytes and `%` percent-encoded.
fn encoded(message: &str) -> String {
    let mut text = String::new();
    for byte in message.bytes() {
        match byte {
            b' '..=b'~' if byte != b'%' => text.push(char::from(byte)),
            _ => text.push_str(&format!("%{byte:02X}")),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_messages_are_percent_encoded() {
        assert_eq!(encoded("10% of ä"), "10%25 of %C3%A4");
        let answer = status(Code::UNAVAILABLE, "x");
        assert_eq!(answer.headers()["grpc-status"], "14");
    }
}
