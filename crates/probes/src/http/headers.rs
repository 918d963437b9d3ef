//! The headers of a request: those of the probe, and defaults where it has none.

use http::{HeaderMap, HeaderName, HeaderValue, header};

use crate::words;

/// What Go's client writes itself, whatever a probe says.
const NOT_TAKEN: [HeaderName; 3] = [
    header::CONTENT_LENGTH,
    header::TRANSFER_ENCODING,
    header::TRAILER,
];

/// The headers of all requests of one attempt.
pub(super) struct Headers {
    /// All but `Host`.
    pub(super) map: HeaderMap,
    /// The first `Host`, if it says something.
    pub(super) host: Option<HeaderValue>,
}

impl Headers {
    /// Takes the probe's `httpHeaders`. An empty `User-Agent` or `Accept` is not sent at all.
    ///
    /// # Errors
    /// A name or a value that can't be sent.
    pub(super) fn new(
        written: &[(Box<str>, Box<str>)],
        user_agent: &HeaderValue,
    ) -> Result<Self, String> {
        let mut map = HeaderMap::with_capacity(written.len() + 3);
        let mut host = None;
        for (name, value) in written {
            let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| {
                let name = words::quoted(name.as_bytes());
                format!("net/http: invalid header field name {name}")
            })?;
            let value = HeaderValue::from_bytes(value.trim_matches([' ', '\t']).as_bytes())
                .map_err(|_| {
                    format!(
                        "net/http: invalid header field value for \"{}\"",
                        titled(&name)
                    )
                })?;
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

/// `x-custom-header` as it goes out: `X-Custom-Header`.
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
mod tests {
    use super::*;

    fn headers(written: &[(&str, &str)]) -> Result<(String, Option<String>), String> {
        let written: Vec<_> = written
            .iter()
            .map(|(name, value)| (Box::from(*name), Box::from(*value)))
            .collect();
        let headers = Headers::new(&written, &HeaderValue::from_static("kube-probe/1.36"))?;
        let text: Vec<_> = headers
            .map
            .iter()
            .map(|(name, value)| format!("{}: {}", titled(name), value.to_str().expect("text")))
            .collect();
        let host = headers
            .host
            .map(|host| host.to_str().expect("text").to_owned());
        Ok((text.join(", "), host))
    }

    #[test]
    fn a_probe_overrides_and_removes_the_defaults() {
        const AGENT: &str = "User-Agent: kube-probe/1.36";
        for (written, sent) in [
            (&[][..], format!("{AGENT}, Accept: */*, Connection: close")),
            (
                &[
                    ("user-agent", "mine"),
                    ("User-Agent", "second"),
                    ("accept", "text/plain"),
                ],
                "User-Agent: mine, Accept: text/plain, Connection: close".to_owned(),
            ),
            (
                &[("User-Agent", ""), ("Accept", ""), ("Accept", "x")],
                "Connection: close".to_owned(),
            ),
            (
                &[("X-A", " 1 "), ("X-a", "2"), ("Content-Length", "5")],
                format!("X-A: 1, X-A: 2, {AGENT}, Accept: */*, Connection: close"),
            ),
            (
                &[("Connection", "Close")],
                format!("Connection: Close, {AGENT}, Accept: */*"),
            ),
            (
                &[("Connection", "Upgrade"), ("Upgrade", "websocket")],
                format!("Connection: Upgrade, Upgrade: websocket, {AGENT}, Accept: */*"),
            ),
        ] {
            assert_eq!(headers(written).expect("headers").0, sent);
        }
    }

    #[test]
    fn the_first_host_counts_unless_it_is_empty() {
        for (written, host) in [
            (
                &[("Host", "a.example"), ("host", "b.example")][..],
                Some("a.example"),
            ),
            (&[("Host", "")], None),
            (&[], None),
        ] {
            assert_eq!(headers(written).expect("headers").1.as_deref(), host);
        }
    }

    #[test]
    fn what_cannot_be_sent_is_named() {
        for (name, value, error) in [
            ("a b", "x", "net/http: invalid header field name \"a b\""),
            (
                "x-one",
                "a\nb",
                "net/http: invalid header field value for \"X-One\"",
            ),
        ] {
            assert_eq!(headers(&[(name, value)]), Err(error.to_owned()));
        }
    }
}
