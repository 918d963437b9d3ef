//! The HTTP proxy on the way to the server: which one, and the request to it.

use std::{fmt, io, net::IpAddr};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::Uri;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::{
    config::Stream,
    server_url::{self, ServerUrl},
};

/// Why a proxy can't be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ProxyError {
    /// The text is no URL of an HTTP proxy.
    #[error("unsupported proxy {0:?}; use http://host:port")]
    Unsupported(String),
    /// A proxy on the way to a server without TLS.
    #[error("a proxy is supported for https servers only")]
    PlainServer,
}

/// Why a proxy made no connection to the server.
#[derive(Debug, thiserror::Error)]
pub enum ProxyConnectError {
    /// The connection to the proxy broke.
    #[error(transparent)]
    Broken(#[from] io::Error),
    /// Its response does not end.
    #[error("its response is too long")]
    TooLong,
    /// It refused: the first line of its response.
    #[error("it responded {0:?}")]
    Refused(String),
}

/// A proxy that supports `CONNECT`.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct HttpProxy {
    host: String,
    port: u16,
    /// `Basic ...`.
    authorization: Option<String>,
}

/// No proxy sends more before the connection.
const MAX_ANSWER: usize = 16 * 1024;

impl HttpProxy {
    pub(super) fn parse(text: &str) -> Result<Self, ProxyError> {
        let unsupported = || ProxyError::Unsupported(without_password(text));
        let text = text.trim();
        let rest = match text.split_once("://") {
            Some(("http", rest)) => rest,
            Some(_) => return Err(unsupported()),
            None => text,
        };
        let rest = rest.trim_end_matches('/');
        let (user, rest) = match rest.rsplit_once('@') {
            Some((user, rest)) => (Some(user), rest),
            None => (None, rest),
        };
        let uri: Uri = format!("http://{rest}")
            .parse()
            .map_err(|_| unsupported())?;
        let authority = uri.authority().ok_or_else(unsupported)?;
        let port = server_url::port(authority, 80).ok_or_else(unsupported)?;
        if uri.path() != "/" || authority.host().is_empty() {
            return Err(unsupported());
        }
        Ok(Self {
            host: authority.host().trim_matches(['[', ']']).to_owned(),
            port,
            authorization: user.map(|user| format!("Basic {}", STANDARD.encode(decoded(user)))),
        })
    }

    /// The environment's proxy for connections to `server`.
    pub(super) fn from_environment(
        server: &ServerUrl,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Option<Self>, ProxyError> {
        if !server.is_https() {
            return Ok(None);
        }
        let variable = |names: [&str; 2]| {
            let values = names.into_iter().filter_map(&variable);
            values.into_iter().find(|value| !value.is_empty())
        };
        let Some(proxy) = variable(["HTTPS_PROXY", "https_proxy"]) else {
            return Ok(None);
        };
        let exempt = variable(["NO_PROXY", "no_proxy"]).unwrap_or_default();
        if is_exempt(server.host(), server.port(), &exempt) {
            return Ok(None);
        }
        Self::parse(&proxy).map(Some)
    }

    pub(super) fn host(&self) -> &str {
        &self.host
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    /// Requests a connection to `target`. Afterwards the stream is that connection.
    pub(super) async fn ask(
        &self,
        stream: &mut dyn Stream,
        target: &str,
    ) -> Result<(), ProxyConnectError> {
        let mut request = format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n");
        if let Some(authorization) = &self.authorization {
            request.push_str("Proxy-Authorization: ");
            request.push_str(authorization);
            request.push_str("\r\n");
        }
        request.push_str("\r\n");
        stream.write_all(request.as_bytes()).await?;
        let mut answer = Vec::new();
        while !answer.ends_with(b"\r\n\r\n") {
            if answer.len() == MAX_ANSWER {
                return Err(ProxyConnectError::TooLong);
            }
            // Byte by byte, because what follows is no longer the proxy's.
            answer.push(stream.read_u8().await?);
        }
        let answer = String::from_utf8_lossy(&answer);
        let first = answer.lines().next().unwrap_or_default();
        match first.split(' ').nth(1) {
            Some(code) if code.len() == 3 && code.starts_with('2') => Ok(()),
            _ => Err(ProxyConnectError::Refused(first.to_owned())),
        }
    }
}

impl fmt::Display for HttpProxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "http://{}:{}", self.host, self.port)
    }
}

impl fmt::Debug for HttpProxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HttpProxy({self})")
    }
}

/// Whether `NO_PROXY` names the server: a name with all names below it, a name with a dot in front
/// (only those below), an address, a network, each with or without port, or `*`. This machine needs
/// no proxy in any case.
fn is_exempt(host: &str, port: u16, rules: &str) -> bool {
    let host = host.to_ascii_lowercase();
    let address: Option<IpAddr> = host.parse().ok();
    if host == "localhost" || address.is_some_and(|address| address.is_loopback()) {
        return true;
    }
    rules.split(',').any(|rule| {
        let rule = rule.trim().to_ascii_lowercase();
        if rule.is_empty() || rule == "*" {
            return rule == "*";
        }
        if let Some((network, bits)) = rule.split_once('/') {
            return match (address, network.parse(), bits.parse()) {
                (Some(address), Ok(network), Ok(bits)) => is_within(address, network, bits),
                _ => false,
            };
        }
        let (name, wanted) = with_port(&rule);
        if wanted.is_some_and(|wanted| wanted != port) {
            return false;
        }
        if let Some(address) = address {
            return name.trim_matches(['[', ']']).parse() == Ok(address);
        }
        let name = name.strip_prefix('*').unwrap_or(name);
        match name.strip_prefix('.') {
            Some(_) => host.ends_with(name),
            None => host == name || host.strip_suffix(name).is_some_and(|h| h.ends_with('.')),
        }
    })
}

fn with_port(rule: &str) -> (&str, Option<u16>) {
    match rule.rsplit_once(':') {
        // More colons without brackets are an IPv6 address.
        Some((name, port)) if !name.contains(':') || name.ends_with(']') => match port.parse() {
            Ok(port) => (name, Some(port)),
            Err(_) => (rule, None),
        },
        _ => (rule, None),
    }
}

fn is_within(address: IpAddr, network: IpAddr, bits: u32) -> bool {
    match (address, network) {
        (IpAddr::V4(address), IpAddr::V4(network)) if bits <= 32 => {
            let mask = u32::MAX.checked_shl(32 - bits).unwrap_or(0);
            address.to_bits() & mask == network.to_bits() & mask
        }
        (IpAddr::V6(address), IpAddr::V6(network)) if bits <= 128 => {
            let mask = u128::MAX.checked_shl(128 - bits).unwrap_or(0);
            address.to_bits() & mask == network.to_bits() & mask
        }
        _ => false,
    }
}

/// `user:password` with `%XX` taken apart.
fn decoded(user: &str) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = user.as_bytes();
    while let [first, tail @ ..] = rest {
        let digits = tail.get(..2).filter(|_| *first == b'%');
        let digits = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                out.push(byte);
                rest = &tail[2..];
            }
            None => {
                out.push(*first);
                rest = tail;
            }
        }
    }
    if !out.contains(&b':') {
        out.push(b':');
    }
    out
}

/// A URL as it may be shown.
fn without_password(text: &str) -> String {
    match (text.split_once("://"), text.rsplit_once('@')) {
        (Some((scheme, _)), Some((_, host))) => format!("{scheme}://..@{host}"),
        (None, Some((_, host))) => format!("..@{host}"),
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proxies_as_people_write_them() {
        let proxy = HttpProxy::parse("http://user:p%40ss@proxy.example:3128/").unwrap();
        assert_eq!(proxy.to_string(), "http://proxy.example:3128");
        assert_eq!(proxy.authorization.as_deref(), Some("Basic dXNlcjpwQHNz"));
        assert_eq!(
            HttpProxy::parse("proxy:8080").unwrap().to_string(),
            "http://proxy:8080"
        );
        for text in [
            "socks5://h:1",
            "https://u:secret@h",
            "http://h/path",
            "http://",
        ] {
            let error = HttpProxy::parse(text).unwrap_err().to_string();
            assert!(!error.contains("secret"), "{error}");
        }
    }

    #[test]
    fn no_proxy_is_read_as_other_programs_read_it() {
        for (host, rules, exempt) in [
            ("api.example", "", false),
            ("api.example", "example", true),
            ("api.example", ".example", true),
            ("example", ".example", false),
            ("example", "*.example", false),
            ("badexample", "example", false),
            ("api.example", "other, api.example:6443", true),
            ("api.example", "api.example:443", false),
            ("API.example", "api.EXAMPLE", true),
            ("10.1.2.3", "10.0.0.0/8", true),
            ("10.1.2.3", "10.1.2.3", true),
            ("10.1.2.3", "11.0.0.0/8,10.1.2.4", false),
            ("fd00::1", "fd00::/8", true),
            ("fd00::1", "[fd00::1]:6443", true),
            ("10.1.2.3", "0.0.0.0/0", true),
            ("localhost", "", true),
            ("127.0.0.1", "", true),
            ("api.example", "*", true),
        ] {
            assert_eq!(is_exempt(host, 6443, rules), exempt, "{host} {rules}");
        }
    }

    #[test]
    fn the_environment_counts_for_secure_servers_only() {
        let proxy = |server: &str| {
            let server = ServerUrl::parse(server, true).unwrap();
            HttpProxy::from_environment(&server, |name| match name {
                "https_proxy" => Some("http://proxy:1".to_owned()),
                "NO_PROXY" => Some("inside".to_owned()),
                _ => None,
            })
            .unwrap()
        };
        assert!(proxy("https://outside").is_some());
        assert!(proxy("https://inside").is_none());
        assert!(proxy("http://outside").is_none());
    }
}
