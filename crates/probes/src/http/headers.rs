//! The headers of a request: those of the probe, and defaults.

use http::{HeaderMap, HeaderName, HeaderValue, header};

use crate::words;

/// Headers that Go's client sets itself, whatever a probe contains.
const NOT_TAKEN: [HeaderName; 3] = [
    header::CONTENT_LENGTH,
    header::TRANSFER_ENCODING,
    header::TRAILER,
];

/// An invalid header, with the messages of Go's client.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum HeaderError {
    /// The name is not a valid HTTP token.
    #[error("net/http: invalid header field name {0}")]
    Name(String),
    /// The value has control characters.
    #[error("net/http: invalid header field value for \"{0}\"")]
    Value(String),
}

/// The headers of all requests of one attempt.
pub(super) struct Headers {
    /// All but `Host`.
    pub(super) map: HeaderMap,
    /// The first non-empty `Host`.
    pub(super) host: Option<HeaderValue>,
}

impl Headers {
    /// Converts the probe's `httpHeaders`. An empty `User-Agent` or `Accept` is not sent at all.
    ///
    /// # Errors
    /// See [`HeaderError`].
    pub(super) fn new(
        written: &[(Box<str>, Box<str>)],
        user_agent: &HeaderValue,
    ) -> Result<Self, HeaderError> {
        let mut map = HeaderMap::with_capacity(written.len() + 3);
        let mut host = None;
        for (name, value) in written {
            let name = HeaderName::from_bytes(name.as_bytes())
                .map_err(|_| HeaderError::Name(words::quoted(name.as_bytes())))?;
            let value = HeaderValue::from_bytes(value.trim_matches([' ', '\t']).as_bytes())
                .map_err(|_| HeaderError::Value(titled(&name)))?;
            if name == header::HOST {
                host.get_or_insert(value);
            } else if name == header::USER_AGENT {
                map.entry(name).or_insert(value);
            } else if !NOT_TAKEN.contains(&name) {
                map.append(name, value);
            }
        }
        for (name, default) in [
            (header::USER_AGENT, user_agent.clone()),
            (header::ACCEPT, HeaderValue::from_static("*/*")),
        ] {
            if map.entry(&name).or_insert(default).is_empty() {
                map.remove(name);
            }
        }
        if !has_token(&map, "close") && !switches_protocol(&map) {
            map.append(header::CONNECTION, HeaderValue::from_static("close"));
        }
        Ok(Self {
            map,
            host: host.filter(|host| !host.is_empty()),
        })
    }
}

fn has_token(map: &HeaderMap, token: &str) -> bool {
    map.get_all(header::CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(|found| found.trim().eq_ignore_ascii_case(token))
}

fn switches_protocol(map: &HeaderMap) -> bool {
    map.contains_key(header::UPGRADE) && has_token(map, "upgrade")
}

/// The canonical form of `x-custom-header`: `X-Custom-Header`.
fn titled(name: &HeaderName) -> String {
    let mut starts = true;
    name.as_str()
        .chars()
        .map(|c| {
            let upper = std::mem::replace(&mut starts, c == '-');
            if upper { c.to_ascii_uppercase() } else { c }
        })
        .collect()
}

#[cfg(test)]
mod tests;
