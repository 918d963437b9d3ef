//! One redirect: its target, and whether credentials may be sent there.

use super::{
    origin::{self, Origin},
    resolve::resolve,
};
use crate::{PullError, PullErrorKind};

/// The next request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Redirect {
    pub(super) url: String,
    pub(super) origin: Origin,
    /// The target has the same origin, so it may get the credentials again.
    pub(super) keeps_credentials: bool,
}

/// Follows a redirect from `url`, which is at `here`, to the header `Location`. `is_insecure` says
/// which hosts may use plain HTTP.
///
/// # Errors
/// The target is invalid, or leads from HTTPS to plain HTTP at a host that is not insecure.
pub(super) fn hop(
    here: &Origin,
    url: &str,
    location: &str,
    is_insecure: impl Fn(&str) -> bool,
) -> Result<Redirect, PullError> {
    let url = resolve(url, location);
    let (_, next) = origin::parse(&url, "the redirect target")?;
    if here.https && !next.https && !is_insecure(next.authority()) {
        let message = format!(
            "{} redirects from HTTPS to plain HTTP at {}, which is refused",
            here.authority(),
            next.authority()
        );
        return Err(PullError::new(PullErrorKind::Refused, message));
    }
    Ok(Redirect {
        url,
        keeps_credentials: next == *here,
        origin: next,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Same scheme, host and port: credentials may be sent again.
    fn is_same(one: &str, other: &str) -> bool {
        let of = |url: &str| url.parse().ok().and_then(|url| Origin::of(&url));
        of(one).is_some() && of(one) == of(other)
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

    #[test]
    fn credentials_stay_at_the_host_and_https_is_not_left() {
        let from = "https://r.test/v2/a";
        let (_, here) = origin::parse(from, "the address").unwrap();
        for (location, insecure, keeps) in [
            ("/b?to=https://s.test", false, Some(true)),
            ("https://R.test:443/b", false, Some(true)),
            ("//s.test/b", false, Some(false)),
            ("http://r.test/b", true, Some(false)),
            ("http://r.test/b", false, None),
            ("ftp://r.test/b", true, None),
        ] {
            let found = hop(&here, from, location, |_| insecure);
            let found = found.ok().map(|hop| hop.keeps_credentials);
            assert_eq!(found, keeps, "{location}");
        }
    }
}
