//! What clients ask for, and what is agreed.

use super::*;

fn headers(lines: &[(&'static str, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in lines {
        headers.append(*name, HeaderValue::from_str(value).unwrap());
    }
    headers
}

fn spdy_request(protocols: &[&str]) -> HeaderMap {
    let mut lines = vec![
        ("connection", "keep-alive, Upgrade"),
        ("upgrade", "spdy/3.1"),
    ];
    lines.extend(
        protocols
            .iter()
            .map(|name| ("x-stream-protocol-version", *name)),
    );
    headers(&lines)
}

fn websocket_request(protocols: &str) -> HeaderMap {
    let mut lines = vec![
        ("connection", "Upgrade"),
        ("upgrade", "websocket"),
        ("sec-websocket-version", "13"),
        ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
    ];
    if !protocols.is_empty() {
        lines.push(("sec-websocket-protocol", protocols));
    }
    headers(&lines)
}

fn agreed(headers: &HeaderMap, kind: SessionKind) -> Option<(Agreed, String)> {
    let agreement = negotiate(headers, kind).ok()?;
    let chosen = ["x-stream-protocol-version", "sec-websocket-protocol"]
        .into_iter()
        .find_map(|name| agreement.headers.get(name));
    let chosen = chosen.map_or("", |value| value.to_str().unwrap());
    Some((agreement.agreed, chosen.to_owned()))
}

#[test]
fn the_best_protocol_that_both_speak_is_chosen() {
    use StatusForm::{Json, Text};
    for (asked, chosen, form, sizes) in [
        (
            &["v4.channel.k8s.io", "v3.channel.k8s.io", "channel.k8s.io"][..],
            "v4.channel.k8s.io",
            Json,
            true,
        ),
        (
            &["channel.k8s.io", "v3.channel.k8s.io"],
            "v3.channel.k8s.io",
            Text,
            true,
        ),
        (
            &["v9.channel.k8s.io, v2.channel.k8s.io"],
            "v2.channel.k8s.io",
            Text,
            false,
        ),
        (&[], "", Text, false),
    ] {
        let found = agreed(&spdy_request(asked), SessionKind::Exec);
        let expected = (Agreed::Spdy { form, sizes }, chosen.to_owned());
        assert_eq!(found, Some(expected), "{asked:?}");
    }
}

#[test]
fn a_client_of_another_protocol_is_told_which_there_are() {
    let refused = negotiate(&spdy_request(&["v9"]), SessionKind::PortForward).unwrap_err();
    assert_eq!(refused.code, StatusCode::FORBIDDEN);
    assert_eq!(
        refused.text,
        "unable to upgrade: unable to negotiate protocol: client supports [v9], server accepts \
         [portforward.k8s.io]\n"
    );
    let headers = refused.headers();
    let told = headers.get("x-accepted-stream-protocol-versions");
    assert_eq!(told.unwrap(), "portforward.k8s.io");
}

#[test]
fn what_is_no_upgrade_is_a_bad_request() {
    for lines in [
        &[][..],
        &[("upgrade", "SPDY/3.1")],
        &[("connection", "upgrade")],
        &[("connection", "upgrade"), ("upgrade", "h2c")],
        &[("connection", "upgrade"), ("upgrade", "websocket")],
        &[
            ("connection", "upgrade"),
            ("upgrade", "websocket"),
            ("sec-websocket-key", "x"),
            ("sec-websocket-version", "8"),
        ],
    ] {
        let refused = negotiate(&headers(lines), SessionKind::Exec).unwrap_err();
        assert_eq!(refused.code, StatusCode::BAD_REQUEST, "{lines:?}");
    }
}

#[test]
fn channels_of_a_websocket() {
    use StatusForm::{Json, Text};
    for (asked, kind, chosen, base64, close_signal, form) in [
        (
            "v5.channel.k8s.io, v4.channel.k8s.io",
            SessionKind::Exec,
            "v5.channel.k8s.io",
            false,
            true,
            Json,
        ),
        (
            "v9, v4.channel.k8s.io",
            SessionKind::Attach,
            "v4.channel.k8s.io",
            false,
            false,
            Json,
        ),
        (
            "v4.base64.channel.k8s.io",
            SessionKind::PortForward,
            "v4.base64.channel.k8s.io",
            true,
            false,
            Json,
        ),
        (
            "base64.channel.k8s.io",
            SessionKind::Exec,
            "base64.channel.k8s.io",
            true,
            false,
            Text,
        ),
        ("", SessionKind::Exec, "", false, false, Text),
        ("", SessionKind::PortForward, "", false, false, Text),
    ] {
        let protocol = ChannelProtocol {
            base64,
            close_signal,
            form,
        };
        let expected = (Agreed::Channels(protocol), chosen.to_owned());
        assert_eq!(
            agreed(&websocket_request(asked), kind),
            Some(expected),
            "{asked}"
        );
    }
    let tunnel = agreed(&websocket_request(TUNNEL), SessionKind::PortForward);
    assert_eq!(tunnel, Some((Agreed::Tunnel, TUNNEL.to_owned())));
    for (asked, kind) in [
        (TUNNEL, SessionKind::Exec),
        ("v5.channel.k8s.io", SessionKind::PortForward),
        ("channel.k8s.io", SessionKind::PortForward),
        ("nothing", SessionKind::Exec),
    ] {
        let refused = negotiate(&websocket_request(asked), kind).unwrap_err();
        assert_eq!(refused.code, StatusCode::FORBIDDEN, "{asked}");
    }
}

/// The example of RFC 6455, section 1.3.
#[test]
fn the_key_is_answered_as_the_rfc_says() {
    let agreement = negotiate(&websocket_request(""), SessionKind::Exec).unwrap();
    let accept = agreement.headers.get("sec-websocket-accept").unwrap();
    assert_eq!(accept, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
}
