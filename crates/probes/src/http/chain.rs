//! A request and the redirects that follow from it.

use http::{HeaderMap, HeaderValue, header};
use tokio::time::Instant;

use super::{
    answer::{self, Answer},
    headers::Headers,
    url::Url,
};
use crate::{dial::dial, report::Trouble, stream::Stream, tls::Tls, words};

/// The most requests of one attempt.
const MAX_REQUESTS: usize = 10;

/// Requests to one host, one after the other.
pub(super) struct Chain<'a> {
    tls: &'a Tls,
    /// Whom the last request asked.
    url: Url,
    first_host: String,
    host: Option<HeaderValue>,
    headers: HeaderMap,
    keeps_referer: bool,
}

impl<'a> Chain<'a> {
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

    /// Asks until an answer is no redirect to the same host.
    ///
    /// # Errors
    /// No answer came, or there were too many redirects. The text names the URL.
    pub(super) async fn answer(&mut self, deadline: Instant) -> Result<Answer, Trouble> {
        let mut sent = 0;
        loop {
            let answer = self.ask(deadline).await.map_err(|trouble| Trouble {
                text: self.said(&trouble.text),
                ..trouble
            })?;
            sent += 1;
            let Some(location) = answer.location() else {
                return Ok(answer);
            };
            let next = self.url.join(&location).map_err(|reason| {
                let location = words::quoted(location.as_bytes());
                Trouble::failed(self.said(&format!(
                    "failed to parse Location header {location}: parse {location}: {reason}"
                )))
            })?;
            if next.host != self.first_host {
                return Ok(answer);
            }
            if sent == MAX_REQUESTS {
                let text = format!("stopped after {MAX_REQUESTS} redirects");
                return Err(Trouble::failed(about(&location, &text)));
            }
            self.follow(next, &location);
        }
    }

    /// A text about the last request: `Get "http://10.0.0.1:80/": EOF`.
    pub(super) fn said(&self, text: &str) -> String {
        about(&self.url.to_string(), text)
    }

    async fn ask(&self, deadline: Instant) -> Result<Answer, Trouble> {
        let url = &self.url;
        if !matches!(url.scheme.as_str(), "http" | "https") {
            let scheme = words::quoted(url.scheme.as_bytes());
            return Err(Trouble::failed(format!(
                "unsupported protocol scheme {scheme}"
            )));
        }
        let wire = dial(&url.host, url.port, deadline).await?;
        let stream = if url.is_https() {
            self.tls.secure(wire, &url.host).await?
        } else {
            Stream::Plain(wire)
        };
        answer::get(stream, url, self.host.as_ref(), &self.headers).await
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
