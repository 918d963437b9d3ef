//! The URL of a request: from an `httpGet`, and from a `Location`.

use std::fmt;

use http::uri::Authority;
use rubelet_base::url_path::without_dots;

use super::escape;
use crate::words;

/// The host of an `httpGet` is invalid, with the message of Go's `url.Parse`.
#[derive(Debug, thiserror::Error)]
#[error("parse {url}: invalid host name")]
pub(super) struct InvalidHost {
    url: String,
}

/// A parsed URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Url {
    /// In lower case. Only `http` and `https` can be requested.
    pub(super) scheme: String,
    /// Host and port as written.
    pub(super) authority: String,
    /// The host, an IPv6 address without its brackets; empty for a URL without host.
    pub(super) host: String,
    /// The port.
    pub(super) port: u16,
    /// Path and query.
    pub(super) target: String,
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            scheme,
            authority,
            target,
            ..
        } = self;
        write!(f, "{scheme}://{authority}{target}")
    }
}

impl Url {
    /// The URL of an `httpGet`. The path may contain a query; a scheme or host in it is ignored,
    /// and text that is not a URL is used literally as a path.
    ///
    /// # Errors
    /// See [`InvalidHost`].
    pub(super) fn new(https: bool, host: &str, port: u16, path: &str) -> Result<Self, InvalidHost> {
        let scheme = if https { "https" } else { "http" };
        let authority = words::joined(host, port);
        if authority.contains('@') || authority.parse::<Authority>().is_err() {
            let url = words::quoted(format!("{scheme}://{authority}/").as_bytes());
            return Err(InvalidHost { url });
        }
        let target = Reference::split(path)
            .filter(|reference| reference.scheme.is_none() || reference.authority.is_some())
            .and_then(|reference| {
                let path = escape::path(reference.path)?;
                Some(target(&path, reference.query))
            })
            .unwrap_or_else(|| target(&escape::literal(path), None));
        Ok(Self {
            scheme: scheme.to_owned(),
            authority,
            host: host.to_owned(),
            port,
            target,
        })
    }

    /// Resolves a `Location` header: RFC 3986, section 5.2.
    ///
    /// # Errors
    /// It is not a URL.
    pub(super) fn join(&self, location: &str) -> Result<Self, &'static str> {
        let reference = Reference::split(location).ok_or("not a URL")?;
        let path = escape::path(reference.path).ok_or("invalid URL escape")?;
        let scheme = match reference.scheme {
            Some(scheme) => scheme.to_ascii_lowercase(),
            None => self.scheme.clone(),
        };
        if let Some(authority) = reference.authority {
            let authority = authority.rsplit('@').next().unwrap_or_default();
            let (host, port) = host_and_port(authority, &scheme)?;
            return Ok(Self {
                host: host.to_owned(),
                port,
                authority: authority.to_owned(),
                target: target(&without_dots(&path), reference.query),
                scheme,
            });
        }
        if reference.scheme.is_some() {
            return Ok(Self {
                host: String::new(),
                port: 0,
                authority: String::new(),
                target: path,
                scheme,
            });
        }
        let (base, base_query) = match self.target.split_once('?') {
            Some((base, query)) => (base, Some(query)),
            None => (self.target.as_str(), None),
        };
        let target = match (path.as_str(), reference.query) {
            ("", None) => target(base, base_query),
            ("", query) => target(base, query),
            (path, query) if path.starts_with('/') => target(&without_dots(path), query),
            (path, query) => {
                let directory = base.rsplit_once('/').map_or("", |(directory, _)| directory);
                target(&without_dots(&format!("{directory}/{path}")), query)
            }
        };
        Ok(Self {
            target,
            ..self.clone()
        })
    }

    /// Whether a `Location` has its own scheme.
    pub(super) fn is_absolute(location: &str) -> bool {
        Reference::split(location).is_some_and(|reference| reference.scheme.is_some())
    }

    pub(super) fn is_https(&self) -> bool {
        self.scheme == "https"
    }
}

/// The parts of a URL or of a relative reference, without its fragment.
struct Reference<'a> {
    scheme: Option<&'a str>,
    authority: Option<&'a str>,
    path: &'a str,
    query: Option<&'a str>,
}

impl<'a> Reference<'a> {
    /// `None` for syntax that Go's `url.Parse` rejects.
    fn split(text: &'a str) -> Option<Self> {
        if text.bytes().any(|byte| byte.is_ascii_control()) {
            return None;
        }
        let text = text.split('#').next().unwrap_or_default();
        let (scheme, rest) = match text.split_once(':') {
            Some((scheme, rest)) if is_scheme(scheme) => (Some(scheme), rest),
            _ => (None, text),
        };
        let (rest, query) = match rest.split_once('?') {
            Some((rest, query)) => (rest, Some(query)),
            None => (rest, None),
        };
        let (authority, path) = match rest.strip_prefix("//") {
            Some(after) if scheme.is_some() || !after.starts_with('/') => {
                let end = after.find('/').unwrap_or(after.len());
                (Some(&after[..end]), &after[end..])
            }
            _ => (None, rest),
        };
        let first_segment = path.split('/').next().unwrap_or_default();
        if scheme.is_none() && first_segment.contains(':') {
            return None;
        }
        Some(Self {
            scheme,
            authority,
            path,
            query,
        })
    }
}

fn is_scheme(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
}

fn target(path: &str, query: Option<&str>) -> String {
    let slash = if path.starts_with('/') { "" } else { "/" };
    let query = query.map(|query| format!("?{}", escape::query(query)));
    format!("{slash}{path}{}", query.unwrap_or_default())
}

fn host_and_port<'a>(authority: &'a str, scheme: &str) -> Result<(&'a str, u16), &'static str> {
    let (host, port) = match authority.strip_prefix('[') {
        Some(inner) => inner.split_once(']').ok_or("missing ']' in host")?,
        None => authority.split_at(authority.find(':').unwrap_or(authority.len())),
    };
    let port = match port.strip_prefix(':') {
        None if port.is_empty() => "",
        Some(digits) if digits.bytes().all(|digit| digit.is_ascii_digit()) => digits,
        _ => return Err("invalid port after host"),
    };
    let port = match (port, scheme) {
        ("", "https") => 443,
        ("", _) => 80,
        (digits, _) => digits.parse().map_err(|_| "invalid port after host")?,
    };
    if !authority.is_empty() && authority.parse::<Authority>().is_err() {
        return Err("invalid character in host name");
    }
    Ok((host, port))
}

#[cfg(test)]
mod tests;
