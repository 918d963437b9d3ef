//! Many connections that show nothing, and clients that take nothing: others are answered all the
//! same.

use std::net::SocketAddr;

use futures_util::future::join_all;
use rubelet_server::Object;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::json;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpSocket, TcpStream},
    time::Instant,
};

use super::server::{Credentials, Server, rest};

/// Raises the soft limit of descriptors: a flood has both of its ends in this process.
pub(super) fn allow_many_files() {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        ..limit
    };
    setrlimit(Resource::Nofile, raised).unwrap();
}

async fn connect(server: &Server, from: [u8; 4]) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(SocketAddr::from((from, 0))).unwrap();
    socket.connect(server.address).await.unwrap()
}

/// Opens 1000 connections in turn from `sources` addresses, sends `greeting` on each, and keeps them.
pub(super) async fn flood(server: &Server, sources: u8, greeting: &[u8]) -> Vec<TcpStream> {
    allow_many_files();
    let mut flood = Vec::with_capacity(1000);
    while flood.len() < 1000 {
        let batch = (0..50).map(|number| connect(server, [127, 1, 1, 1 + number % sources]));
        for mut stream in join_all(batch).await {
            // One that was shed already can't be written to.
            let _ = stream.write_all(greeting).await;
            flood.push(stream);
        }
    }
    flood
}

#[tokio::test]
async fn the_api_server_is_answered_beside_a_thousand_unauthenticated_connections() {
    for (sources, greeting) in [
        (1, &b""[..]),
        (50, b""),
        (1, b"\x16\x03\x01"),
        (50, b"\x16"),
    ] {
        let server = Server::start().await;
        let held = flood(&server, sources, greeting).await;
        let ann = server.authority.client("ann", &[]);
        let first = server
            .ask(&Credentials::Certificate(ann), "GET", "/pods")
            .await;
        let second = server.get("/pods").await;
        assert_eq!((first.code, second.code), (200, 200));
        let notes = server.notes.take();
        let count = |note: &str| notes.iter().filter(|one| *one == note).count();
        // It did not wait for a timeout: connections in its way were closed for it.
        assert!(count("handshake failed") < 200, "{sources} {greeting:?}");
        assert!(count("refused readwrite source") >= 800);
        drop(held);
    }
}

#[tokio::test]
async fn an_authenticated_connection_outlives_a_flood_from_its_own_address() {
    let server = Server::start().await;
    let ann = server.authority.client("ann", &[]);
    let mut by_certificate = server.connect(Some(&ann)).await;
    let mut by_token = server.connect(None).await;
    let request = b"GET /healthz HTTP/1.1\r\nHost: node\r\nAuthorization: Bearer tok-ann\r\n\r\n";
    let mut answer = [0; 15];
    for stream in [&mut by_certificate, &mut by_token] {
        stream.write_all(request).await.unwrap();
        stream.read_exact(&mut answer).await.unwrap();
    }
    let held = flood(&server, 1, b"").await;
    for stream in [&mut by_certificate, &mut by_token] {
        stream.write_all(request).await.unwrap();
        stream.read_exact(&mut answer).await.unwrap();
    }
    drop(held);
}

#[tokio::test]
async fn the_plain_port_answers_beside_a_thousand_silent_connections() {
    let server = Server::read_only().await;
    let held = flood(&server, 1, b"GET /pods HT").await;
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let request = b"GET /healthz HTTP/1.1\r\nHost: node\r\nConnection: close\r\n\r\n";
    stream.write_all(request).await.unwrap();
    assert!(rest(&mut stream).await.starts_with("HTTP/1.1 200"));
    let notes = server.notes.take();
    let shed = notes.iter().filter(|one| *one == "refused readonly source");
    assert!(shed.count() >= 900);
    drop(held);
}

#[tokio::test]
async fn an_unauthenticated_client_that_does_not_read_its_response_is_disconnected_after_a_minute()
{
    let server = Server::read_only().await;
    server.node.pods.put(Object::new("default", "large", || {
        json!({ "metadata": { "name": "large" }, "status": { "message": "x".repeat(32 << 20) } })
    }));
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream
        .write_all(b"GET /pods HTTP/1.1\r\nHost: node\r\n\r\n")
        .await
        .unwrap();
    while !server
        .notes
        .take()
        .contains(&"answered pods 200".to_owned())
    {
        tokio::task::yield_now().await;
    }
    tokio::time::pause();
    let began = Instant::now();
    while !server
        .notes
        .take()
        .contains(&"refused readonly stalled".to_owned())
    {
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    }
    let seconds = began.elapsed().as_secs();
    assert!((50..=120).contains(&seconds), "{seconds}");
    tokio::time::resume();
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes).await;
    assert!(bytes.len() < 32 << 20);
}

#[tokio::test]
async fn a_refusal_that_nobody_takes_keeps_no_connection() {
    let server = Server::start().await;
    let stream = server.try_connect(None, &[b"h2"]).await.unwrap();
    // Its window has no room for a single byte of an answer.
    let (mut client, connection) = h2::client::Builder::new()
        .initial_window_size(0)
        .handshake::<_, bytes::Bytes>(stream)
        .await
        .unwrap();
    let connection = tokio::spawn(connection);
    let request = http::Request::builder()
        .uri("https://node/pods")
        .body(())
        .unwrap();
    let (answer, _) = client.send_request(request, true).unwrap();
    let answer = answer.await.unwrap();
    assert_eq!(answer.status().as_u16(), 401);
    tokio::time::pause();
    let began = Instant::now();
    let _ = connection.await.unwrap();
    assert!(began.elapsed().as_secs() <= 15);
    drop(answer);
}
