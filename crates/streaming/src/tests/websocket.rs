//! WebSockets: a client of another implementation, tungstenite's.

use bytes::Bytes;
use futures_util::{SinkExt as _, StreamExt as _};
use http::{HeaderMap, HeaderValue, header};
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::{Message, protocol::Role},
};

use super::{
    fixture::{Fixture, upgraded},
    front::{endless, through},
};
use crate::{SessionKind, SessionTarget, StdStreams};

type Socket = WebSocketStream<TokioIo<Upgraded>>;

pub(super) fn headers(protocol: &str) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(
        header::SEC_WEBSOCKET_VERSION,
        HeaderValue::from_static("13"),
    );
    let key = HeaderValue::from_static("dGhlIHNhbXBsZSBub25jZQ==");
    headers.insert(header::SEC_WEBSOCKET_KEY, key);
    if !protocol.is_empty() {
        let protocol = HeaderValue::from_str(protocol).unwrap();
        headers.insert(header::SEC_WEBSOCKET_PROTOCOL, protocol);
    }
    headers
}

async fn connect(url: &str, protocol: &str) -> Socket {
    let (io, _) = upgraded(url, headers(protocol)).await;
    WebSocketStream::from_raw_socket(io, Role::Client, None).await
}

/// The messages until the end, without empty ones.
pub(super) async fn rest(socket: &mut Socket) -> Vec<Bytes> {
    let mut messages = Vec::new();
    while let Some(Ok(message)) = socket.next().await {
        match message {
            Message::Binary(data) if data.len() > 1 => messages.push(data),
            Message::Text(text) if text.len() > 1 => messages.push(text.into()),
            _ => {}
        }
    }
    messages
}

#[tokio::test]
async fn a_client_of_v5_closes_its_input() {
    let fixture = Fixture::new();
    let url = fixture.exec_url("cat", false).await;
    let mut socket = connect(&url, "v5.channel.k8s.io").await;
    socket.send(Message::binary(&b"\0hello"[..])).await.unwrap();
    socket.send(Message::binary(&b"\xff\0"[..])).await.unwrap();
    let messages = rest(&mut socket).await;
    assert_eq!(messages[0], &b"\x01hello"[..]);
    assert_eq!(
        messages[1],
        &b"\x03{\"metadata\":{},\"status\":\"Success\"}"[..]
    );
}

#[tokio::test]
async fn old_protocols_have_their_forms() {
    let fixture = Fixture::new();
    for (protocol, hello, error) in [
        ("v4.channel.k8s.io", &b"\0hi"[..], &b"\x03{"[..]),
        ("", b"\0hi", b"\x03command terminated"),
        (
            "base64.channel.k8s.io",
            b"0aGk=",
            b"3Y29tbWFuZCB0ZXJtaW5hdGVk",
        ),
        ("v4.base64.channel.k8s.io", b"0aGk=", b"3ey"),
    ] {
        let url = fixture.exec_url("exit 3", false).await;
        let mut socket = connect(&url, protocol).await;
        // It may have exited already.
        let _ = socket.send(Message::binary(hello)).await;
        let messages = rest(&mut socket).await;
        assert!(messages[0].starts_with(error), "{protocol}: {messages:?}");
    }
}

#[tokio::test]
async fn messages_that_make_no_sense_end_the_session() {
    let fixture = Fixture::new();
    for (protocol, rubbish) in [
        ("v5.channel.k8s.io", &b"\xff"[..]),
        ("v5.channel.k8s.io", b"\xff\x09"),
        ("base64.channel.k8s.io", b"0!!"),
    ] {
        let url = fixture.exec_url("cat", false).await;
        let mut socket = connect(&url, protocol).await;
        socket.send(Message::binary(&b""[..])).await.unwrap();
        socket
            .send(Message::binary(&b"\x09nobody"[..]))
            .await
            .unwrap();
        socket.send(Message::binary(rubbish)).await.unwrap();
        assert_eq!(rest(&mut socket).await, Vec::<Bytes>::new(), "{rubbish:?}");
    }
    assert_eq!(fixture.echo.ended.lock().len(), 3);
}

#[tokio::test]
async fn each_port_has_two_channels() {
    let fixture = Fixture::new();
    let url = fixture.ports_url(&[80, 1]).await;
    let mut socket = connect(&url, "v4.channel.k8s.io").await;
    let mut first = Vec::new();
    for _ in 0..5 {
        first.push(socket.next().await.unwrap().unwrap().into_data());
    }
    for (expected, what) in [
        (&b"\0\x50\0"[..], "data of port 80"),
        (b"\x01\x50\0", "errors of port 80"),
        (b"\x02\x01\0", "data of port 1"),
        (b"\x03\x01\0", "errors of port 1"),
        (
            b"\x03error forwarding port 1 to pod: connection refused",
            "the error",
        ),
    ] {
        assert!(first.iter().any(|one| one == expected), "{what}: {first:?}");
    }
    socket.send(Message::binary(&b"\0ping"[..])).await.unwrap();
    assert_eq!(
        socket.next().await.unwrap().unwrap().into_data(),
        &b"\0ping"[..]
    );
}

#[tokio::test]
async fn spdy_goes_through_a_websocket() {
    let fixture = Fixture::new();
    let url = fixture.ports_url(&[]).await;
    for remote in [false, true] {
        let protocol = "SPDY/3.1+portforward.k8s.io";
        let (io, _) = match remote {
            false => upgraded(&url, headers(protocol)).await,
            true => {
                let target = SessionTarget::Url {
                    url: fixture.ports_url(&[]).await.parse().unwrap(),
                    kind: SessionKind::PortForward,
                    streams: StdStreams::default(),
                    ports: Vec::new(),
                };
                through(target, headers(protocol), endless()).await
            }
        };
        let socket = WebSocketStream::from_raw_socket(io, Role::Client, None).await;
        let dialer = crate::client::ports(Tunnel::over(socket));
        let mut connection = dialer.dial(80).await.unwrap();
        connection.sink.write("hello".into()).await.unwrap();
        assert_eq!(connection.source.read().await.unwrap().unwrap(), "hello");
    }
}

#[tokio::test]
async fn a_client_of_v5_reaches_a_server_that_speaks_spdy_only() {
    let fixture = Fixture::new();
    let target = SessionTarget::Url {
        url: fixture.exec_url("cat", false).await.parse().unwrap(),
        kind: SessionKind::Exec,
        streams: StdStreams {
            stdin: true,
            stdout: true,
            stderr: true,
            tty: false,
        },
        ports: Vec::new(),
    };
    let (io, _) = through(target, headers("v5.channel.k8s.io"), endless()).await;
    let mut socket = WebSocketStream::from_raw_socket(io, Role::Client, None).await;
    socket
        .send(Message::binary(&b"\0over there"[..]))
        .await
        .unwrap();
    socket.send(Message::binary(&b"\xff\0"[..])).await.unwrap();
    let messages = rest(&mut socket).await;
    assert_eq!(messages[0], &b"\x01over there"[..]);
    assert_eq!(
        messages[1],
        &b"\x03{\"metadata\":{},\"status\":\"Success\"}"[..]
    );
}

/// The bytes of a WebSocket as a connection.
struct Tunnel;

impl Tunnel {
    fn over(mut socket: Socket) -> tokio::io::DuplexStream {
        use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
        let (ours, mut theirs) = tokio::io::duplex(64 << 10);
        tokio::spawn(async move {
            let mut buffer = vec![0; 4096];
            loop {
                tokio::select! {
                    read = theirs.read(&mut buffer) => match read {
                        Ok(read @ 1..) => {
                            let bytes = Bytes::copy_from_slice(&buffer[..read]);
                            socket.send(Message::Binary(bytes)).await.unwrap();
                        }
                        _ => return,
                    },
                    message = socket.next() => match message {
                        Some(Ok(message)) => theirs.write_all(&message.into_data()).await.unwrap(),
                        _ => return,
                    },
                }
            }
        });
        ours
    }
}
