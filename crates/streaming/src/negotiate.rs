//! Negotiates the protocol between a client and this server, from the head of a request.

use aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use base64::{Engine as _, prelude::BASE64_STANDARD};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};

use crate::{SessionKind, status::StatusForm};

/// Names the protocol of a session's streams over SPDY.
pub(crate) const STREAM_PROTOCOL: HeaderName = HeaderName::from_static("x-stream-protocol-version");

const ACCEPTED_PROTOCOLS: HeaderName =
    HeaderName::from_static("x-accepted-stream-protocol-versions");

/// The value of `Upgrade` for SPDY.
pub(crate) const SPDY: &str = "SPDY/3.1";

/// The only protocol of port-forward.
pub(crate) const PORT_FORWARD: &str = "portforward.k8s.io";

/// SPDY within the messages of a WebSocket.
pub(crate) const TUNNEL: &str = "SPDY/3.1+portforward.k8s.io";

/// The protocols of exec and attach over SPDY, the best first.
pub(crate) const REMOTE_COMMAND: [&str; 4] = [
    "v4.channel.k8s.io",
    "v3.channel.k8s.io",
    "v2.channel.k8s.io",
    "channel.k8s.io",
];

/// RFC 6455, section 1.3.
const WEBSOCKET_SUFFIX: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// The negotiated protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Agreed {
    /// SPDY.
    Spdy {
        /// The format in which exec and attach report the end of a session.
        form: StatusForm,
        /// Whether there is a stream of terminal sizes.
        sizes: bool,
    },
    /// A WebSocket with channels.
    Channels(ChannelProtocol),
    /// SPDY in the messages of a WebSocket.
    Tunnel,
}

/// A protocol of channels in a WebSocket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ChannelProtocol {
    /// Messages are base64 text.
    pub(crate) base64: bool,
    /// The client can close a channel: `v5`.
    pub(crate) close_signal: bool,
    pub(crate) form: StatusForm,
}

/// A negotiated protocol, and the headers of the response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Agreement {
    pub(crate) agreed: Agreed,
    pub(crate) headers: HeaderMap,
}

/// Why no protocol was negotiated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Disagreement {
    pub(crate) code: StatusCode,
    pub(crate) text: String,
    /// The supported protocols, if that was the reason.
    pub(crate) served: &'static [&'static str],
}

impl Disagreement {
    fn bad_request(text: &str) -> Self {
        Self {
            code: StatusCode::BAD_REQUEST,
            text: text.to_owned(),
            served: &[],
        }
    }

    /// The headers of the response.
    pub(crate) fn headers(&self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for protocol in self.served {
            headers.append(ACCEPTED_PROTOCOLS, HeaderValue::from_static(protocol));
        }
        headers
    }
}

/// Whether a request is for a WebSocket, and with which subprotocols.
#[must_use]
pub fn websocket_protocols(headers: &HeaderMap) -> Option<Vec<&str>> {
    let is_websocket = wants_upgrade(headers)
        && values(headers, &header::UPGRADE).any(|value| value.eq_ignore_ascii_case("websocket"));
    is_websocket.then(|| values(headers, &header::SEC_WEBSOCKET_PROTOCOL).collect())
}

/// Negotiates a protocol with a client.
pub(crate) fn negotiate(headers: &HeaderMap, kind: SessionKind) -> Result<Agreement, Disagreement> {
    if let Some(protocols) = websocket_protocols(headers) {
        return websocket(headers, kind, &protocols);
    }
    let is_spdy = values(headers, &header::UPGRADE).any(|value| value.eq_ignore_ascii_case(SPDY));
    if !wants_upgrade(headers) || !is_spdy {
        return Err(Disagreement::bad_request(
            "Upgrade request required: this path speaks SPDY/3.1 and WebSocket\n",
        ));
    }
    spdy(headers, kind)
}

fn spdy(headers: &HeaderMap, kind: SessionKind) -> Result<Agreement, Disagreement> {
    let served: &'static [&'static str] = match kind {
        SessionKind::PortForward => &[PORT_FORWARD],
        SessionKind::Exec | SessionKind::Attach => &REMOTE_COMMAND,
    };
    let asked: Vec<&str> = values(headers, &STREAM_PROTOCOL).collect();
    let chosen = served.iter().find(|served| asked.contains(served));
    let mut answer = HeaderMap::new();
    if chosen.is_none() && !asked.is_empty() {
        return Err(Disagreement {
            code: StatusCode::FORBIDDEN,
            text: format!(
                "unable to upgrade: unable to negotiate protocol: client supports [{}], server accepts [{}]\n",
                asked.join(" "),
                served.join(" ")
            ),
            served,
        });
    }
    answer.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
    answer.insert(header::UPGRADE, HeaderValue::from_static(SPDY));
    if let Some(protocol) = chosen {
        answer.insert(STREAM_PROTOCOL, HeaderValue::from_static(protocol));
    }
    // The default, for a client that names none.
    let version = chosen.copied().unwrap_or("channel.k8s.io");
    Ok(Agreement {
        agreed: Agreed::Spdy {
            form: form_of(version),
            sizes: has_sizes(version),
        },
        headers: answer,
    })
}

/// The format in which a protocol reports the end of a session.
pub(crate) fn form_of(version: &str) -> StatusForm {
    match version {
        "v4.channel.k8s.io" => StatusForm::Json,
        _ => StatusForm::Text,
    }
}

/// Whether a protocol has a stream of terminal sizes.
pub(crate) fn has_sizes(version: &str) -> bool {
    matches!(version, "v4.channel.k8s.io" | "v3.channel.k8s.io")
}

fn websocket(
    headers: &HeaderMap,
    kind: SessionKind,
    asked: &[&str],
) -> Result<Agreement, Disagreement> {
    let version = headers.get(header::SEC_WEBSOCKET_VERSION);
    let key = headers.get(header::SEC_WEBSOCKET_KEY);
    let (Some(key), true) = (key, version.is_some_and(|version| version == "13")) else {
        return Err(Disagreement::bad_request(
            "the request is no handshake of a WebSocket of version 13\n",
        ));
    };
    let chosen = match asked {
        [] => Some((channel_protocol("", kind), "")),
        asked => asked
            .iter()
            .map(|name| (channel_protocol(name, kind), *name))
            .find(|(protocol, _)| protocol.is_some()),
    };
    let Some((Some(agreed), name)) = chosen else {
        return Err(Disagreement {
            code: StatusCode::FORBIDDEN,
            text: format!(
                "requested protocol(s) are not supported: [{}]\n",
                asked.join(" ")
            ),
            served: &[],
        });
    };
    let mut answer = HeaderMap::new();
    answer.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
    answer.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
    let accept = accept_key(key.as_bytes());
    if let Ok(accept) = HeaderValue::from_str(&accept) {
        answer.insert(header::SEC_WEBSOCKET_ACCEPT, accept);
    }
    if let Some(name) = Some(name).filter(|name| !name.is_empty())
        && let Ok(name) = HeaderValue::from_str(name)
    {
        answer.insert(header::SEC_WEBSOCKET_PROTOCOL, name);
    }
    Ok(Agreement {
        agreed,
        headers: answer,
    })
}

fn channel_protocol(name: &str, kind: SessionKind) -> Option<Agreed> {
    let is_ports = kind == SessionKind::PortForward;
    let channels = |base64, close_signal, form| {
        Some(Agreed::Channels(ChannelProtocol {
            base64,
            close_signal,
            form,
        }))
    };
    match name {
        TUNNEL if is_ports => Some(Agreed::Tunnel),
        "v5.channel.k8s.io" if !is_ports => channels(false, true, StatusForm::Json),
        "v4.channel.k8s.io" => channels(false, false, StatusForm::Json),
        "v4.base64.channel.k8s.io" => channels(true, false, StatusForm::Json),
        "channel.k8s.io" if !is_ports => channels(false, false, StatusForm::Text),
        "base64.channel.k8s.io" if !is_ports => channels(true, false, StatusForm::Text),
        "" => channels(false, false, StatusForm::Text),
        _ => None,
    }
}

/// `Sec-WebSocket-Accept` for a `Sec-WebSocket-Key`.
fn accept_key(key: &[u8]) -> String {
    let hash = digest(&SHA1_FOR_LEGACY_USE_ONLY, &[key, WEBSOCKET_SUFFIX].concat());
    BASE64_STANDARD.encode(hash)
}

/// Whether a request asks for another protocol, in the way that the kubelet recognizes it.
#[must_use]
pub fn wants_upgrade(headers: &HeaderMap) -> bool {
    values(headers, &header::CONNECTION).any(|value| value.eq_ignore_ascii_case("upgrade"))
}

/// The values of a header that may be repeated, or be a comma-separated list.
fn values<'a>(headers: &'a HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'a str> {
    let texts = headers.get_all(name).into_iter();
    texts
        .filter_map(|value| value.to_str().ok())
        .flat_map(|text| text.split(','))
        .map(str::trim)
        .filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests;
