//! The URL of the API server.

use std::fmt;

use http::{
    Uri,
    uri::{Authority, Scheme},
};

/// Why a text is no URL of an API server.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ServerUrlError {
    /// Not a URL at all.
    #[error("not a URL; write https://host:port")]
    Syntax,
    /// Neither http nor https.
    #[error("unsupported scheme {0:?}; use https")]
    Scheme(String),
    /// It holds more than scheme, host, port and path.
    #[error("the URL of a server cannot contain a user, query or fragment")]
    Extra,
}

/// The URL of an API server: scheme, host, port, and a path before all paths of requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerUrl {
    https: bool,
    /// As it was written: with the port only where one was.
    authority: Box<str>,
    /// Without brackets.
    host: Box<str>,
    port: u16,
    /// Empty, or with a slash in front and none at the end.
    base: Box<str>,
}

impl ServerUrl {
    /// Reads a URL. A text without scheme is read as http, or as https where `secure` reports that
    /// there is something that only makes sense with TLS.
    ///
    /// # Errors
    /// The text is no URL of a server.
    pub fn parse(text: &str, secure: bool) -> Result<Self, ServerUrlError> {
        let scheme = if secure { "https" } else { "http" };
        let text = text.trim();
        let text = if text.contains("://") {
            text.to_owned()
        } else {
            format!("{scheme}://{text}")
        };
        if text.contains(['@', '?', '#']) {
            return Err(ServerUrlError::Extra);
        }
        let uri: Uri = text.parse().map_err(|_| ServerUrlError::Syntax)?;
        let https = match uri.scheme() {
            Some(scheme) if *scheme == Scheme::HTTPS => true,
            Some(scheme) if *scheme == Scheme::HTTP => false,
            Some(other) => return Err(ServerUrlError::Scheme(other.to_string())),
            None => return Err(ServerUrlError::Syntax),
        };
        let authority = uri.authority().ok_or(ServerUrlError::Syntax)?;
        let host = authority.host().trim_matches(['[', ']']);
        let default = if https { 443 } else { 80 };
        let port = port(authority, default).ok_or(ServerUrlError::Syntax)?;
        if host.is_empty() || port == 0 {
            return Err(ServerUrlError::Syntax);
        }
        Ok(Self {
            https,
            authority: authority.as_str().into(),
            host: host.into(),
            port,
            base: uri.path().trim_end_matches('/').into(),
        })
    }

    /// Whether TLS is used.
    #[must_use]
    pub fn is_https(&self) -> bool {
        self.https
    }

    /// Name or address, an IPv6 one without brackets.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The port.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Host and port as they were written.
    #[must_use]
    pub fn authority(&self) -> &str {
        &self.authority
    }

    /// The prefix of the path of each request.
    pub(crate) fn base(&self) -> &str {
        &self.base
    }
}

/// The port, `default` where none is written; `None` where there can be no such port.
pub(crate) fn port(authority: &Authority, default: u16) -> Option<u16> {
    let (_, after) = authority.as_str().split_at(authority.host().len());
    match after {
        "" => Some(default),
        after => after.strip_prefix(':')?.parse().ok(),
    }
}

impl fmt::Display for ServerUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.https { "https" } else { "http" };
        write!(f, "{scheme}://{}{}", self.authority, self.base)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_as_people_write_them() {
        for (text, secure, shown, host, port) in [
            (
                "https://10.0.0.1:6443",
                true,
                "https://10.0.0.1:6443",
                "10.0.0.1",
                6443,
            ),
            (
                "https://api.example/",
                false,
                "https://api.example",
                "api.example",
                443,
            ),
            (
                "http://localhost:8080",
                true,
                "http://localhost:8080",
                "localhost",
                8080,
            ),
            (
                "localhost:8080",
                false,
                "http://localhost:8080",
                "localhost",
                8080,
            ),
            (
                "api.example",
                true,
                "https://api.example",
                "api.example",
                443,
            ),
            (
                "https://[::1]:6443",
                true,
                "https://[::1]:6443",
                "::1",
                6443,
            ),
            ("https://h/k8s/c-1/", true, "https://h/k8s/c-1", "h", 443),
        ] {
            let url = ServerUrl::parse(text, secure).expect(text);
            assert_eq!(url.to_string(), shown);
            assert_eq!((url.host(), url.port()), (host, port), "{text}");
        }
    }

    #[test]
    fn an_invalid_server_is_refused() {
        for text in [
            "",
            "https://",
            "ftp://h",
            "https://u:p@h",
            "https://h?x=1",
            "https://h:99999",
        ] {
            assert!(ServerUrl::parse(text, true).is_err(), "{text}");
        }
    }
}
