//! A request and the redirects that it leads to.

use http::{HeaderMap, HeaderValue, header};
use tokio::time::Instant;

use super::{
    headers::Headers,
    response::{self, Response},
    url::Url,
};
use crate::{dial::dial, report::ProbeFailure, stream::Stream, tls::Tls, words};

/// Maximum number of requests of one attempt.
const MAX_REQUESTS: usize = 10;

/// Consecutive requests to one host.
pub(super) struct RedirectChain<'a> {
    tls: &'a Tls,
    /// The URL of the last request.
    url: Url,
    first_host: String,
    host: Option<HeaderValue>,
    headers: HeaderMap,
    keeps_referer: bool,
}

impl<'a> RedirectChain<'a> {
    pub(super) fn new(tls: &'a Tls, url: Url, headers: Headers) -> Self {
        Self {
            tls,
            first_host: url.host.clone(),
            url,
            host: headers.host,
            keeps_referer: headers.map.contains_key(header::REFERER),
            headers: headers.map,
        }
    }

    /// Sends requests until a response is not a redirect to the same host.
    ///
    /// # Errors
    /// No response, or too many redirects. The message names the URL.
    pub(super) async fn answer(&mut self, deadline: Instant) -> Result<Response, ProbeFailure> {
        let mut sent = 0;
        loop {
            let answer = self.ask(deadline).await.map_err(|failure| ProbeFailure {
                text: self.said(&failure.text),
                ..failure
            })?;
            sent += 1;
            let Some(location) = answer.location() else {
                return Ok(answer);
            };
            let next = self.url.join(&location).map_err(|reason| {
                let location = words::quoted(location.as_bytes());
                ProbeFailure::failed(self.said(&format!(
                    "failed to parse Location header {location}: parse {location}: {reason}"
                )))
            })?;
            if next.host != self.first_host {
                return Ok(answer);
            }
            if sent == MAX_REQUESTS {
                let text = format!("stopped after {MAX_REQUESTS} redirects");
                return Err(ProbeFailure::failed(about(&location, &text)));
            }
            self.follow(next, &location);
        }
    }

    /// A message about the last request: `Get "http://10.0.0.1:80/": EOF`.
    pub(super) fn said(&self, text: &str) -> String {
        about(&self.url.to_string(), text)
    }

    async fn ask(&self, deadline: Instant) -> Result<Response, ProbeFailure> {
        let url = &self.url;
        if !matches!(url.scheme.as_str(), "http" | "https") {
            let scheme = words::quoted(url.scheme.as_bytes());
            return Err(ProbeFailure::failed(format!(
                "unsupported protocol scheme {scheme}"
            )));
        }
        let socket = dial(&url.host, url.port, deadline).await?;
        let stream = if url.is_https() {
            Stream::Secure(self.tls.secure(socket, &url.host).await?)
        } else {
            Stream::Plain(socket)
        };
        response::get(stream, url, self.host.as_ref(), &self.headers).await
    }

    fn follow(&mut self, next: Url, location: &str) {
        if Url::is_absolute(location) {
            self.host = None;
        }
        if !self.keeps_referer {
            self.headers.remove(header::REFERER);
            let downgrade = self.url.is_https() && !next.is_https();
            if let Ok(referer) = HeaderValue::from_str(&self.url.to_string())
                && !downgrade
            {
                self.headers.insert(header::REFERER, referer);
            }
        }
        self.url = next;
    }
}

pub(super) fn about(url: &str, text: &str) -> String {
    format!("Get {}: {text}", words::quoted(url.as_bytes()))
}
