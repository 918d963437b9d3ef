//! How requests for WebSockets are recognized.

use http::HeaderValue;

use super::*;

#[test]
fn websockets_are_recognized_as_the_kubelet_does() {
    for (upgrade, connection, protocol, websocket, with) in [
        ("websocket", "Upgrade", "v5.channel.k8s.io", true, true),
        (
            "WebSocket",
            "keep-alive, upgrade",
            "v4.channel.k8s.io, v5.channel.k8s.io",
            true,
            true,
        ),
        ("websocket", "upgrade", "v4.channel.k8s.io", true, false),
        ("websocket", "upgrade", "v5.channel.k8s.io.x", true, false),
        ("websocket", "close", "v5.channel.k8s.io", false, false),
        ("SPDY/3.1", "upgrade", "v5.channel.k8s.io", false, false),
    ] {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            (header::UPGRADE, upgrade),
            (header::CONNECTION, connection),
            (header::SEC_WEBSOCKET_PROTOCOL, protocol),
        ] {
            headers.insert(name, HeaderValue::from_str(value).unwrap());
        }
        assert_eq!(is_websocket(&headers), websocket, "{upgrade} {connection}");
        assert_eq!(
            is_websocket_with(&headers, STREAM_CLOSE),
            with,
            "{protocol}"
        );
    }
    assert!(!is_websocket(&HeaderMap::new()));
}
