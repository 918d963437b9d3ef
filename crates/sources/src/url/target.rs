//! The target of a request: an absolute http or https URL, and `Location` resolved against it.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::{
    Uri,
    uri::{Authority, Scheme},
};
use rubelet_base::url_path::without_dots;

/// An invalid URL. Does not show passwords.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    /// Not a URL at all.
    #[error("not a URL; write http://host/path or https://host/path, other characters as %XX")]
    Syntax,
    /// Neither http nor https.
    #[error("unsupported scheme {0:?}; use http or https")]
    Scheme(String),
    /// No host.
    #[error("the URL has no host")]
    Host,
}

/// An absolute URL without user, password and fragment, with user and password separate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) uri: Uri,
    /// `user:password`, decoded.
    pub(super) credentials: Option<Vec<u8>>,
}

impl Target {
    /// Parses an absolute URL.
    pub(super) fn parse(text: &str) -> Result<Self, TargetError> {
        let uri: Uri = text.parse().map_err(|_| TargetError::Syntax)?;
        let mut parts = uri.into_parts();
        match &parts.scheme {
            Some(scheme) if *scheme == Scheme::HTTP || *scheme == Scheme::HTTPS => {}
            Some(other) => return Err(TargetError::Scheme(other.to_string())),
            None => return Err(TargetError::Scheme(String::new())),
        }
        let authority = parts.authority.take().ok_or(TargetError::Host)?;
        let (user, host) = match authority.as_str().rsplit_once('@') {
            Some((user, host)) => (Some(user), host),
            None => (None, authority.as_str()),
        };
        let host: Authority = host.parse().map_err(|_| TargetError::Host)?;
        if host.host().is_empty() {
            return Err(TargetError::Host);
        }
        parts.authority = Some(host);
        parts
            .path_and_query
            .get_or_insert_with(|| http::uri::PathAndQuery::from_static("/"));
        let credentials = user.map(|user| {
            let (name, password) = user.split_once(':').unwrap_or((user, ""));
            [decode(name), vec![b':'], decode(password)].concat()
        });
        Ok(Self {
            uri: Uri::from_parts(parts).map_err(|_| TargetError::Syntax)?,
            credentials,
        })
    }

    /// Resolves a `Location` header: RFC 3986, section 5.2.
    pub(super) fn join(&self, location: &str) -> Result<Self, TargetError> {
        let location = location.split('#').next().unwrap_or_default();
        let scheme = self.uri.scheme_str().unwrap_or("http");
        let authority = self.uri.authority().map_or("", Authority::as_str);
        let has_scheme = location.split_once(':').is_some_and(|(scheme, _)| {
            scheme.starts_with(|c: char| c.is_ascii_alphabetic())
                && scheme
                    .bytes()
                    .all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b))
        });
        if has_scheme {
            return Self::parse(location);
        }
        if location.starts_with("//") {
            return Self::parse(&format!("{scheme}:{location}"));
        }
        let (path, query) = match location.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (location, None),
        };
        let base = self.uri.path();
        let (path, query) = match path {
            "" => (base.to_owned(), query.or(self.uri.query())),
            path if path.starts_with('/') => (without_dots(path), query),
            path => {
                let directory = base.rsplit_once('/').map_or("", |(directory, _)| directory);
                (without_dots(&format!("{directory}/{path}")), query)
            }
        };
        let query = query.map(|query| format!("?{query}")).unwrap_or_default();
        Self::parse(&format!("{scheme}://{authority}{path}{query}"))
    }

    pub(super) fn is_https(&self) -> bool {
        self.uri.scheme() == Some(&Scheme::HTTPS)
    }

    /// The host without port, in lower case.
    pub(super) fn host(&self) -> String {
        self.uri.host().unwrap_or_default().to_ascii_lowercase()
    }

    /// The `Authorization` header with user and password.
    pub(super) fn authorization(&self) -> Option<String> {
        self.credentials
            .as_ref()
            .map(|credentials| format!("Basic {}", STANDARD.encode(credentials)))
    }

    /// The URL for display, with the password replaced.
    pub(super) fn shown(&self) -> String {
        let text = self.uri.to_string();
        let user = self.credentials.as_deref().map(|both| {
            let name = both.split(|byte| *byte == b':').next().unwrap_or_default();
            String::from_utf8_lossy(name).into_owned()
        });
        match (user, text.split_once("://")) {
            (Some(user), Some((scheme, rest))) => format!("{scheme}://{user}:xxxxx@{rest}"),
            _ => text,
        }
    }
}

/// Decodes `%XX`; invalid sequences stay.
fn decode(text: &str) -> Vec<u8> {
    let bytes = text.as_bytes();
    let mut out = Vec::new();
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let digits = text.get(at + 1..at + 3).filter(|_| *byte == b'%');
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(decoded) => {
                out.push(decoded);
                at += 3;
            }
            None => {
                out.push(*byte);
                at += 1;
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(text: &str) -> Target {
        Target::parse(text).expect(text)
    }

    #[test]
    fn locations_are_resolved_as_the_standard_says() {
        let base = target("http://host:8080/a/b/c?q=1");
        for (location, expected) in [
            ("https://other/x", "https://other/x"),
            ("//other:1/x", "http://other:1/x"),
            ("/x/../y", "http://host:8080/y"),
            ("d", "http://host:8080/a/b/d"),
            ("./d?e=f", "http://host:8080/a/b/d?e=f"),
            ("../d", "http://host:8080/a/d"),
            ("../../../d/", "http://host:8080/d/"),
            ("..", "http://host:8080/a/"),
            ("?r=2", "http://host:8080/a/b/c?r=2"),
            ("", "http://host:8080/a/b/c?q=1"),
            ("d#fragment", "http://host:8080/a/b/d"),
            ("d:e/f", ""),
        ] {
            let joined = base.join(location).map(|target| target.uri.to_string());
            match expected {
                "" => assert!(joined.is_err(), "{location}"),
                expected => assert_eq!(joined.as_deref(), Ok(expected), "{location}"),
            }
        }
    }

    #[test]
    fn only_absolute_web_addresses_are_taken() {
        for (text, error) in [
            ("file:///etc/passwd", TargetError::Syntax),
            ("ftp://host/x", TargetError::Scheme("ftp".to_owned())),
            ("host/x", TargetError::Syntax),
            ("/x", TargetError::Scheme(String::new())),
            ("http://a b/", TargetError::Syntax),
            ("http://user@/x", TargetError::Syntax),
        ] {
            let result = Target::parse(text);
            assert!(result.is_err(), "{text}");
            if !matches!(error, TargetError::Syntax) {
                assert_eq!(result, Err(error), "{text}");
            }
        }
        assert_eq!(target("http://host").uri, "http://host/");
        assert_eq!(target("http://host:1?q").uri, "http://host:1/?q");
        assert_eq!(target("http://[::1]:8/x").host(), "[::1]");
    }

    #[test]
    fn user_and_password_become_a_header_and_are_not_shown() {
        let target = target("http://Aladdin:open%20sesame@host/x");
        assert_eq!(target.uri, "http://host/x");
        assert_eq!(
            target.authorization().as_deref(),
            Some("Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==")
        );
        assert_eq!(target.shown(), "http://Aladdin:xxxxx@host/x");
        assert_eq!(
            Target::parse("http://host/x")
                .expect("a URL")
                .authorization(),
            None
        );
    }
}
