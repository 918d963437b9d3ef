//! What a server answered, by whichever version of HTTP.

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode, Uri, header, response::Parts};
use http_body_util::Empty;

use super::{one, two, url::Url};
use crate::{report::Trouble, stream::Stream};

/// An answer whose body is still to be read. Dropped, it closes the connection.
pub(super) struct Answer {
    head: Parts,
    rest: Rest,
}

enum Rest {
    One(one::Rest),
    Two(two::Rest),
}

/// Asks for a URL.
///
/// # Errors
/// No answer came, or it was none.
pub(super) async fn get(
    stream: Stream,
    url: &Url,
    host: Option<&HeaderValue>,
    headers: &HeaderMap,
) -> Result<Answer, Trouble> {
    let shown = |error: &dyn std::fmt::Display| Trouble::errored(format!("{error}"));
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
        let rest = Rest::Two(rest);
        return Ok(Answer { head, rest });
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
    let rest = Rest::One(rest);
    Ok(Answer { head, rest })
}

impl Answer {
    pub(super) fn status(&self) -> StatusCode {
        self.head.status
    }

    /// Where a redirect leads, if the answer is one that is followed.
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
    /// It broke off.
    pub(super) async fn read(self) -> Result<Vec<u8>, String> {
        match self.rest {
            Rest::One(rest) => rest.read().await,
            Rest::Two(rest) => rest.read().await,
        }
    }
}
