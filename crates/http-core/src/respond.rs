//! Building answers.

use std::{convert::Infallible, io};

use bytes::Bytes;
use futures_core::Stream;
use futures_util::StreamExt as _;
use http::{HeaderValue, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Full, StreamBody, combinators::UnsyncBoxBody};
use hyper::body::Frame;
use serde_json::Value;

use crate::status::ApiError;

/// The body of a response: whole, or polled piece by piece.
pub type Body = UnsyncBoxBody<Bytes, io::Error>;

/// A response, or the error to respond with.
pub type ApiResult = Result<Response<Body>, ApiError>;

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const TAR: HeaderValue = HeaderValue::from_static("application/x-tar");
const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");
const METRICS: HeaderValue = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");

fn respond(code: StatusCode, kind: HeaderValue, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = code;
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

fn whole(bytes: impl Into<Bytes>) -> Body {
    Full::new(bytes.into())
        .map_err(|never: Infallible| match never {})
        .boxed_unsync()
}

fn pulled(pieces: impl Stream<Item = Result<Bytes, io::Error>> + Send + 'static) -> Body {
    StreamBody::new(pieces.map(|piece| piece.map(Frame::data))).boxed_unsync()
}

/// A JSON document.
#[must_use]
pub fn json(value: &Value) -> Response<Body> {
    respond(StatusCode::OK, JSON, whole(value.to_string()))
}

/// One or more JSON documents, rendered while they are sent.
#[must_use]
pub fn json_pieces(
    pieces: impl Stream<Item = Result<Bytes, io::Error>> + Send + 'static,
) -> Response<Body> {
    respond(StatusCode::OK, JSON, pulled(pieces))
}

/// Plain text with a status code.
#[must_use]
pub fn text(code: StatusCode, text: String) -> Response<Body> {
    respond(code, TEXT, whole(text))
}

/// Bytes served as JSON.
#[must_use]
pub fn json_bytes(bytes: Bytes) -> Response<Body> {
    respond(StatusCode::OK, JSON, whole(bytes))
}

/// Nothing but a status code.
#[must_use]
pub fn empty(code: StatusCode) -> Response<Body> {
    let mut response = Response::new(whole(Bytes::new()));
    *response.status_mut() = code;
    response
}

/// A response that is complete.
#[must_use]
pub fn plain(response: Response<Bytes>) -> Response<Body> {
    response.map(whole)
}

/// Metrics in Prometheus' text format.
#[must_use]
pub fn metrics(text: String) -> Response<Body> {
    respond(StatusCode::OK, METRICS, whole(text))
}

/// A tar stream.
#[must_use]
pub fn tar(
    pieces: impl Stream<Item = Result<Bytes, io::Error>> + Send + 'static,
) -> Response<Body> {
    respond(StatusCode::OK, TAR, pulled(pieces))
}

/// Plain text that arrives over time.
#[must_use]
pub fn text_pieces(
    pieces: impl Stream<Item = Result<Bytes, io::Error>> + Send + 'static,
) -> Response<Body> {
    respond(StatusCode::OK, TEXT, pulled(pieces))
}

/// A plain-text refusal as a v1 Status, with its other headers.
#[must_use]
pub fn as_status(refusal: Response<Bytes>) -> Response<Body> {
    let (parts, body) = refusal.into_parts();
    let message = String::from_utf8_lossy(&body).trim_end().to_owned();
    let mut response = error(&ApiError::of_code(parts.status, message));
    for (name, value) in &parts.headers {
        let about_body = [header::CONTENT_TYPE, header::CONTENT_LENGTH];
        if !about_body.contains(name) {
            response.headers_mut().append(name, value.clone());
        }
    }
    response
}

/// An error as a v1 Status.
#[must_use]
pub fn error(error: &ApiError) -> Response<Body> {
    let mut response = respond(error.code, JSON, whole(error.to_json().to_string()));
    if let Some(allow) = error.allow {
        response
            .headers_mut()
            .insert(header::ALLOW, HeaderValue::from_static(allow));
    }
    response
}
