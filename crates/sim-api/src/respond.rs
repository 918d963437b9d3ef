//! Builds responses.

use std::{convert::Infallible, io, time::Duration};

use bytes::Bytes;
use futures_core::Stream;
use futures_util::{StreamExt as _, stream};
use http::{HeaderValue, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Full, StreamBody, combinators::UnsyncBoxBody};
use hyper::body::Frame;
use serde_json::Value;

use crate::{StatusError, negotiation::ResponseFormat, protobuf};

/// The body of a response: whole or streamed.
pub(crate) type Body = UnsyncBoxBody<Bytes, io::Error>;

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");

pub(crate) fn respond(code: StatusCode, kind: HeaderValue, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = code;
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

pub(crate) fn whole(bytes: impl Into<Bytes>) -> Body {
    Full::new(bytes.into())
        .map_err(|never: Infallible| match never {})
        .boxed_unsync()
}

/// A JSON document.
pub(crate) fn json(code: StatusCode, value: &Value) -> Response<Body> {
    respond(code, JSON, whole(value.to_string()))
}

/// An object in the requested format; fails if it has no protobuf message.
pub(crate) fn object(
    code: StatusCode,
    value: &Value,
    format: ResponseFormat,
) -> Result<Response<Body>, StatusError> {
    if format != ResponseFormat::Protobuf {
        return Ok(json(code, value));
    }
    let bytes = protobuf::write(value).ok_or_else(StatusError::not_acceptable)?;
    let kind = HeaderValue::from_static(protobuf::MEDIA_TYPE);
    Ok(respond(code, kind, whole(bytes)))
}

/// Streams the events of a watch.
pub(crate) fn events(
    format: ResponseFormat,
    pieces: impl Stream<Item = io::Result<Bytes>> + Send + 'static,
) -> Response<Body> {
    let pieces = pieces.map(|piece| piece.map(Frame::data));
    let kind = match format {
        ResponseFormat::Protobuf => HeaderValue::from_static(protobuf::STREAM_TYPE),
        _ => JSON,
    };
    respond(StatusCode::OK, kind, StreamBody::new(pieces).boxed_unsync())
}

/// The first half of some bytes, followed by an error that closes the connection.
pub(crate) fn half(bytes: &Bytes) -> impl Stream<Item = io::Result<Bytes>> + Send + use<> {
    let half = bytes.slice(..bytes.len() / 2);
    let cut = async {
        // The data must be sent before the error.
        tokio::time::sleep(FLUSHED).await;
        Err(io::Error::new(
            io::ErrorKind::ConnectionReset,
            "cut by a fault rule",
        ))
    };
    stream::once(async { Ok(half) }).chain(stream::once(cut))
}

/// Plain text.
pub(crate) fn text(code: StatusCode, text: &str) -> Response<Body> {
    respond(code, TEXT, whole(text.to_owned()))
}

/// An error as a v1 Status.
pub(crate) fn error(error: &StatusError, format: ResponseFormat) -> Response<Body> {
    let code = StatusCode::from_u16(error.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let status = error.to_json();
    let mut response = object(code, &status, format).unwrap_or_else(|_| json(code, &status));
    if let Some(seconds) = error.retry_after {
        let headers = response.headers_mut();
        headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

/// Time for sending the first half of a response.
const FLUSHED: Duration = Duration::from_millis(5);

/// The same response, truncated to its first half.
pub(crate) async fn halved(response: Response<Body>) -> Response<Body> {
    let (parts, body) = response.into_parts();
    let bytes = match body.collect().await {
        Ok(collected) => collected.to_bytes(),
        Err(_) => Bytes::new(),
    };
    let pieces = half(&bytes).map(|piece| piece.map(Frame::data));
    Response::from_parts(parts, StreamBody::new(pieces).boxed_unsync())
}
