//! Origins of registries, and which of them are local.

use std::net::IpAddr;

use http::Uri;

use crate::{PullError, PullErrorKind};

/// Scheme, host and port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Origin {
    pub(super) https: bool,
    /// Host and port as in a URL; lower case.
    authority: String,
}

impl Origin {
    pub(super) fn new(https: bool, authority: &str) -> Self {
        Self {
            https,
            authority: authority.to_ascii_lowercase(),
        }
    }

    /// The origin of an absolute URL, which must have no user and password.
    pub(super) fn of(url: &Uri) -> Option<Self> {
        let https = match url.scheme_str()? {
            "https" => true,
            "http" => false,
            _ => return None,
        };
        let authority = url.authority()?.as_str();
        if authority.contains('@') {
            return None;
        }
        let default = if https { ":443" } else { ":80" };
        let authority = authority.strip_suffix(default).unwrap_or(authority);
        Some(Self::new(https, authority))
    }

    pub(super) fn authority(&self) -> &str {
        &self.authority
    }

    pub(super) fn url(&self, path: &str) -> String {
        let scheme = if self.https { "https" } else { "http" };
        format!("{scheme}://{}{path}", self.authority)
    }
}

/// The host without its port.
pub(super) fn host_of(authority: &str) -> &str {
    if let Some(rest) = authority.strip_prefix('[') {
        return rest.split(']').next().unwrap_or_default();
    }
    authority.split(':').next().unwrap_or_default()
}

/// Reports whether the host can only be this machine.
pub(super) fn is_loopback(authority: &str) -> bool {
    let host = host_of(authority);
    let address = host.parse::<IpAddr>();
    host.eq_ignore_ascii_case("localhost") || address.is_ok_and(|address| address.is_loopback())
}

/// Parses a URL that a server sent.
pub(super) fn parse(url: &str, whose: &str) -> Result<(Uri, Origin), PullError> {
    let wrong = || {
        let message = format!("{whose} is not a valid URL: {url:.200}");
        PullError::new(PullErrorKind::Refused, message)
    };
    let parsed: Uri = url.parse().map_err(|_| wrong())?;
    let origin = Origin::of(&parsed).ok_or_else(wrong)?;
    Ok((parsed, origin))
}
