//! A server's response, with either version of HTTP.

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode, Uri, header, response::Parts};
use http_body_util::Empty;

use super::{BodyError, one, two, url::Url};
use crate::{report::ProbeFailure, stream::Stream};

/// A response whose body is not read yet. Dropping it closes the connection.
pub(super) struct Response {
    head: Parts,
    rest: ResponseBody,
}

enum ResponseBody {
    One(one::ResponseBody),
    Two(two::ResponseBody),
}

/// Requests a URL.
///
/// # Errors
/// No response, or an invalid one.
pub(super) async fn get(
    stream: Stream,
    url: &Url,
    host: Option<&HeaderValue>,
    headers: &HeaderMap,
) -> Result<Response, ProbeFailure> {
    let shown = |error: &dyn std::fmt::Display| ProbeFailure::errored(format!("{error}"));
    let mut builder = Request::builder().method(Method::GET);
    if stream.chose_http2() {
        let authority = host.map_or(url.authority.as_bytes(), HeaderValue::as_bytes);
        let uri = Uri::builder()
            .scheme("https")
            .authority(authority)
            .path_and_query(url.target.as_str())
            .build()
            .map_err(|error| shown(&error))?;
        let mut request = builder.uri(uri).body(()).map_err(|error| shown(&error))?;
        *request.headers_mut() = headers.clone();
        let (head, rest) = Box::pin(two::ask(stream, request)).await?;
        let rest = ResponseBody::Two(rest);
        return Ok(Response { head, rest });
    }
    builder = match host {
        Some(host) => builder.header(header::HOST, host),
        None => builder.header(header::HOST, &url.authority),
    };
    let mut request = builder
        .uri(url.target.as_str())
        .body(Empty::<Bytes>::new())
        .map_err(|error| shown(&error))?;
    request.headers_mut().extend(headers.clone());
    let (head, rest) = one::ask(stream, request).await?;
    let rest = ResponseBody::One(rest);
    Ok(Response { head, rest })
}

impl Response {
    pub(super) fn status(&self) -> StatusCode {
        self.head.status
    }

    /// The target of a redirect, if the response is one that is followed.
    pub(super) fn location(&self) -> Option<String> {
        let followed = matches!(self.head.status.as_u16(), 301 | 302 | 303 | 307 | 308);
        let location = self
            .head
            .headers
            .get(header::LOCATION)
            .filter(|_| followed)?;
        Some(String::from_utf8_lossy(location.as_bytes()).into_owned())
            .filter(|text| !text.is_empty())
    }

    /// Reads the body, at most 10 KiB of it.
    ///
    /// # Errors
    /// See [`BodyError`].
    pub(super) async fn read(self) -> Result<Vec<u8>, BodyError> {
        match self.rest {
            ResponseBody::One(rest) => rest.read().await,
            ResponseBody::Two(rest) => rest.read().await,
        }
    }
}
