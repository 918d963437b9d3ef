//! Following redirects, without showing credentials to anybody else.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Request, header};
use http_body_util::Full;

use super::{
    origin,
    peer::Peer,
    transport::{Answer, unsent},
};
use crate::{PullError, PullErrorKind};

/// Registries send to storage, and that perhaps to a nearer one.
const MAX_REDIRECTS: usize = 5;

/// What to ask for.
pub(super) struct Ask {
    pub(super) url: String,
    pub(super) accept: Option<HeaderValue>,
    pub(super) authorization: Option<HeaderValue>,
    /// How long each answer may take.
    pub(super) patience: Duration,
}

/// The last answer, and whether it is from where the first one was asked.
pub(super) async fn follow(peer: &Peer, mut ask: Ask) -> Result<(Answer, bool), PullError> {
    let (_, start) = origin::parse(&ask.url, "the address of the registry")?;
    let mut here = start.clone();
    for _ in 0..=MAX_REDIRECTS {
        let mut request = Request::get(&ask.url);
        if let Some(accept) = &ask.accept {
            request = request.header(header::ACCEPT, accept);
        }
        if let Some(authorization) = &ask.authorization {
            request = request.header(header::AUTHORIZATION, authorization);
        }
        let request = request.body(Full::<Bytes>::default());
        let request = request.map_err(|error| unsent(here.authority(), error))?;
        let answer = peer.send(request, ask.patience).await?;
        if !matches!(answer.status.as_u16(), 301 | 302 | 303 | 307 | 308) {
            return Ok((answer, here == start));
        }
        let location = answer.headers.get(header::LOCATION);
        let location = location
            .and_then(|value| value.to_str().ok())
            .ok_or_else(|| {
                let message = format!("{} sends elsewhere without saying where", here.authority());
                PullError::new(PullErrorKind::Unavailable, message)
            })?;
        let url = resolve(&ask.url, location);
        let (_, next) = origin::parse(&url, "where the registry sends")?;
        if here.https && !next.https && !peer.is_insecure(next.authority()) {
            let message = format!(
                "{} sends from HTTPS to plain HTTP at {}, which is refused",
                here.authority(),
                next.authority()
            );
            return Err(PullError::new(PullErrorKind::Refused, message));
        }
        if next != here {
            ask.authorization = None;
        }
        ask.url = url;
        here = next;
    }
    let message = format!("{} sends round in circles", start.authority());
    Err(PullError::new(PullErrorKind::Unavailable, message))
}

/// Where `location` leads from `base`: a URL, or a path on the same host.
fn resolve(base: &str, location: &str) -> String {
    if location.contains("://") {
        return location.to_owned();
    }
    let scheme_end = base.find("://").map_or(0, |at| at + 3);
    if let Some(rest) = location.strip_prefix("//") {
        return format!("{}{rest}", &base[..scheme_end]);
    }
    let path_at = base[scheme_end..]
        .find('/')
        .map_or(base.len(), |at| scheme_end + at);
    if location.starts_with('/') {
        return format!("{}{location}", &base[..path_at]);
    }
    let path = base[path_at..].split(['?', '#']).next().unwrap_or_default();
    let folder = path.rfind('/').map_or("/", |slash| &path[..=slash]);
    format!("{}{folder}{location}", &base[..path_at])
}

#[cfg(test)]
mod tests {
    use super::{super::origin::Origin, *};

    /// Where two addresses have the same scheme, host and port, credentials may be shown again.
    fn is_same(one: &str, other: &str) -> bool {
        let of = |url: &str| url.parse().ok().and_then(|url| Origin::of(&url));
        of(one).is_some() && of(one) == of(other)
    }

    #[test]
    fn redirects_are_resolved_as_browsers_do() {
        let base = "https://r.test:5000/v2/a/blobs/x?y=/z";
        for (location, url) in [
            ("https://s.test/b", "https://s.test/b"),
            ("//s.test/b", "https://s.test/b"),
            ("/b?c", "https://r.test:5000/b?c"),
            ("b", "https://r.test:5000/v2/a/blobs/b"),
        ] {
            assert_eq!(resolve(base, location), url);
        }
    }

    #[test]
    fn another_port_or_scheme_is_another_host() {
        for (one, other, same) in [
            ("https://r.test/a", "https://R.test:443/b", true),
            ("https://r.test/a", "https://r.test:444/a", false),
            ("https://r.test/a", "http://r.test/a", false),
            ("https://r.test/a", "https://r.test.evil/a", false),
            ("https://r.test/a", "https://user@r.test/a", false),
        ] {
            assert_eq!(is_same(one, other), same, "{other}");
        }
    }
}
