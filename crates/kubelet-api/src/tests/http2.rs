//! HTTP/2, chosen in the handshake.

use bytes::Bytes;
use http::{Request, Version};

use super::server::Server;

/// Asks once over HTTP/2.
pub(super) async fn get(server: &Server, token: &str, path: &str) -> (u16, Bytes) {
    let stream = server.try_connect(None, &[b"h2"]).await.unwrap();
    let (mut client, connection) = h2::client::handshake(stream).await.unwrap();
    let connection = tokio::spawn(connection);
    let request = Request::builder()
        .version(Version::HTTP_2)
        .uri(format!("https://node{path}"))
        .header("authorization", format!("Bearer {token}"))
        .body(())
        .unwrap();
    let (answer, _) = client.send_request(request, true).unwrap();
    let answer = answer.await.unwrap();
    let code = answer.status().as_u16();
    let mut body = answer.into_body();
    let mut bytes = Vec::new();
    while let Some(piece) = body.data().await {
        let piece = piece.unwrap();
        body.flow_control().release_capacity(piece.len()).unwrap();
        bytes.extend_from_slice(&piece);
    }
    connection.abort();
    (code, bytes.into())
}

#[tokio::test]
async fn both_protocols_are_spoken_and_judged_alike() {
    let server = Server::start().await;
    let http1 = server.get("/pods").await;
    assert_eq!(http1.code, 200);
    assert_eq!(
        get(&server, "tok-ann", "/pods").await,
        (200, Bytes::from(http1.body))
    );
    assert_eq!(get(&server, "guessed", "/pods").await.0, 401);
    assert_eq!(get(&server, "tok-bob", "/pods").await.0, 403);
    assert_eq!(get(&server, "tok-bob", "/x").await.0, 404);
}

#[tokio::test]
async fn a_client_that_names_no_protocol_gets_http_1() {
    let server = Server::start().await;
    let stream = server.try_connect(None, &[]).await.unwrap();
    assert_eq!(stream.get_ref().1.alpn_protocol(), None);
    let stream = server
        .try_connect(None, &[b"h2", b"http/1.1"])
        .await
        .unwrap();
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
}

#[tokio::test]
async fn a_head_that_is_too_long_is_refused() {
    let server = Server::start().await;
    let (code, _) = get(&server, &"x".repeat(100 * 1024), "/pods").await;
    assert_eq!(code, 401);
    let stream = server.try_connect(None, &[b"h2"]).await.unwrap();
    let (mut client, connection) = h2::client::Builder::new()
        .handshake::<_, Bytes>(stream)
        .await
        .unwrap();
    tokio::spawn(connection);
    let request = Request::builder()
        .uri("https://node/pods")
        .header("x-long", "x".repeat(200 * 1024))
        .body(())
        .unwrap();
    let (answer, _) = client.send_request(request, true).unwrap();
    let refused = match answer.await {
        Ok(answer) => answer.status().as_u16() == 431,
        Err(_) => true,
    };
    assert!(refused);
}

#[tokio::test]
async fn one_connection_has_a_hundred_requests_at_a_time() {
    let server = Server::start().await;
    let stream = server.try_connect(None, &[b"h2"]).await.unwrap();
    let (mut client, connection) = h2::client::handshake(stream).await.unwrap();
    let connection = tokio::spawn(connection);
    let request = Request::builder().uri("https://node/x").body(()).unwrap();
    let (answer, _) = client.send_request(request, true).unwrap();
    assert_eq!(answer.await.unwrap().status().as_u16(), 404);
    assert_eq!(client.current_max_send_streams(), 100);
    connection.abort();
}
