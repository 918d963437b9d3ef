//! Bodies of answers: those of the runtime, and those made here.

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

/// A runtime's or a client's own.
pub(super) fn own(body: Incoming) -> Body {
    body.map_err(BoxError::from).boxed_unsync()
}

/// Nothing, and the stream's end.
pub(super) fn nothing() -> Body {
    Empty::new()
        .map_err(|never: Infallible| match never {})
        .boxed_unsync()
}

/// These bytes, and then the trailers if there are some.
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

/// What a task sends. Without trailers the stream just ends.
struct Channel(mpsc::Receiver<Result<Frame<Bytes>, BoxError>>);

pub(super) type Sender = mpsc::Sender<Result<Frame<Bytes>, BoxError>>;

/// A body of one frame at a time: who sends waits for who reads.
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

/// An answer that is a status alone.
pub(super) fn status(code: Code, message: &str) -> Response<Body> {
    let mut answer = Response::new(nothing());
    let headers = answer.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/grpc"),
    );
    set_status(headers, code, message);
    answer
}

/// Trailers that end a stream well.
pub(super) fn good_end() -> HeaderMap {
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

/// As gRPC writes messages: printable ASCII, the rest and `%` as bytes in hexadecimal.
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
    fn messages_are_written_as_grpc_wants_them() {
        assert_eq!(encoded("10% of ä"), "10%25 of %C3%A4");
        let answer = status(Code::UNAVAILABLE, "x");
        assert_eq!(answer.headers()["grpc-status"], "14");
    }
}
