//! Redirects, by the rules of Go's HTTP client: their number, and the headers to forward.

use http::{HeaderMap, HeaderName, StatusCode, header};

use super::target::Target;

/// Maximum number of requests of one fetch.
pub(super) const MAX_REQUESTS: usize = 10;

/// Headers that only go to the host for which they were configured, and to hosts below it.
const SENSITIVE: [HeaderName; 5] = [
    header::AUTHORIZATION,
    header::COOKIE,
    header::HOST,
    header::PROXY_AUTHORIZATION,
    header::WWW_AUTHENTICATE,
];

/// True for statuses of a GET that redirect the client with a `Location`.
pub(super) fn is_redirect(status: StatusCode) -> bool {
    matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308)
}

/// The state of a chain of redirects.
#[derive(Debug)]
pub(super) struct RedirectChain {
    first: Target,
    headers: HeaderMap,
    /// True once a redirect left the first host: sensitive headers are no longer sent, even if it
    /// returns.
    left: bool,
}

impl RedirectChain {
    pub(super) fn new(first: Target, headers: HeaderMap) -> Self {
        Self {
            first,
            headers,
            left: false,
        }
    }

    /// Headers for the request that follows the redirect from `from` to `to`.
    pub(super) fn follow(&mut self, from: &Target, to: &Target) -> &HeaderMap {
        if !self.left && !is_same_or_below(&to.host(), &self.first.host()) {
            self.left = true;
            for name in SENSITIVE {
                self.headers.remove(name);
            }
            self.headers.remove("cookie2");
        }
        // No `Referer` from https to http.
        let referer =
            (!from.is_https() || to.is_https()).then(|| from.uri.to_string().parse().ok());
        match referer.flatten() {
            Some(referer) => self.headers.insert(header::REFERER, referer),
            None => self.headers.remove(header::REFERER),
        };
        &self.headers
    }

    pub(super) fn headers(&self) -> &HeaderMap {
        &self.headers
    }
}

fn is_same_or_below(host: &str, first: &str) -> bool {
    let below = host
        .strip_suffix(first)
        .is_some_and(|rest| rest.ends_with('.'));
    // Addresses are not domains.
    host == first || (below && !first.contains([':', '%']))
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn target(text: &str) -> Target {
        Target::parse(text).expect(text)
    }

    #[test]
    fn secrets_stay_with_the_host_they_were_given_for() {
        for (hops, kept) in [
            (&["http://host/b"][..], true),
            (&["http://host:8080/b"], true),
            (&["https://sub.host/b"], true),
            (&["http://otherhost/b"], false),
            (&["http://host.evil/b"], false),
            (&["http://other/b", "http://host/c"], false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::AUTHORIZATION, HeaderValue::from_static("secret"));
            headers.insert("x-plain", HeaderValue::from_static("1"));
            let mut from = target("http://host/a");
            let mut chain = RedirectChain::new(from.clone(), headers);
            for hop in hops {
                let to = target(hop);
                chain.follow(&from, &to);
                from = to;
            }
            assert_eq!(
                chain.headers().contains_key(header::AUTHORIZATION),
                kept,
                "{hops:?}"
            );
            assert!(chain.headers().contains_key("x-plain"));
        }
    }

    #[test]
    fn a_secure_page_is_not_named_to_an_insecure_one() {
        for (from, to, referer) in [
            ("http://host/a", "http://host/b", Some("http://host/a")),
            ("http://host/a", "https://host/b", Some("http://host/a")),
            ("https://host/a", "http://host/b", None),
        ] {
            let (from, to) = (target(from), target(to));
            let mut chain = RedirectChain::new(from.clone(), HeaderMap::new());
            let headers = chain.follow(&from, &to);
            assert_eq!(
                headers.get(header::REFERER).map(HeaderValue::as_bytes),
                referer.map(str::as_bytes)
            );
        }
    }
}
