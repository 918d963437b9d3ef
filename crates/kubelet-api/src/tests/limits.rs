//! Too long, too slow, too much.

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::Instant,
};

use super::server::{Reply, Server, rest};

fn with_head_of(bytes: usize) -> String {
    let long = "x".repeat(bytes);
    format!(
        "GET /healthz HTTP/1.1\r\nHost: node\r\nConnection: close\r\nAuthorization: Bearer \
         tok-ann\r\nX-Long: {long}\r\n\r\n"
    )
}

#[tokio::test]
async fn heads_have_a_limit_that_is_lower_without_a_valid_certificate() {
    let server = Server::start().await;
    let ann = server.authority.client("ann", &[]);
    let expired = server.authority.expired_client("ann");
    for (holder, kilobytes, code) in [
        (None, 100, 200),
        (None, 200, 431),
        (Some(&expired), 200, 431),
        (Some(&ann), 200, 200),
        (Some(&ann), 900, 200),
        (Some(&ann), 1100, 431),
    ] {
        let mut stream = server.connect(holder).await;
        // The answer may come, and the connection end, before everything is sent.
        let _ = stream
            .write_all(with_head_of(kilobytes * 1024).as_bytes())
            .await;
        let _ = stream.flush().await;
        let text = rest(&mut stream).await;
        // A reset can take the answer with it.
        if code == 200 || !text.is_empty() {
            assert_eq!(Reply::read(&text).code, code, "{kilobytes}");
        }
    }
}

#[tokio::test]
async fn too_many_header_lines_are_refused() {
    let server = Server::start().await;
    let mut stream = server.connect(None).await;
    let lines: String = (0..200).map(|line| format!("X-{line}: y\r\n")).collect();
    let request = format!("GET /healthz HTTP/1.1\r\nHost: node\r\n{lines}\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    assert_eq!(Reply::read(&rest(&mut stream).await).code, 431);
}

#[tokio::test]
async fn a_body_that_is_announced_too_long_is_refused_unread() {
    let server = Server::start().await;
    let mut stream = server.connect(None).await;
    let request = "POST /run/default/web/a HTTP/1.1\r\nHost: node\r\nAuthorization: Bearer \
                   tok-ann\r\nContent-Length: 99999999999\r\n\r\n";
    stream.write_all(request.as_bytes()).await.unwrap();
    let reply = Reply::read(&rest(&mut stream).await);
    assert_eq!(reply.code, 413);
    // Unauthenticated clients don't get so far.
    let mut stream = server.connect(None).await;
    let request = request.replace("tok-ann", "guessed");
    stream.write_all(request.as_bytes()).await.unwrap();
    assert_eq!(Reply::read(&rest(&mut stream).await).code, 401);
}

#[tokio::test]
async fn a_body_that_nobody_wants_does_not_keep_the_answer_waiting() {
    let server = Server::start().await;
    let mut stream = server.connect(None).await;
    let request = "POST /run/default/web/a HTTP/1.1\r\nHost: node\r\nAuthorization: Bearer \
                   tok-ann\r\nContent-Length: 1000000\r\n\r\nonly this";
    stream.write_all(request.as_bytes()).await.unwrap();
    assert_eq!(Reply::read(&rest(&mut stream).await).code, 200);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_never_begins_its_handshake_is_left() {
    let server = Server::start().await;
    let began = Instant::now();
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    assert_eq!(rest(&mut stream).await, "");
    assert_eq!(began.elapsed().as_secs(), 10);
    assert_eq!(server.notes.take(), ["handshake failed"]);
}

#[tokio::test]
async fn a_client_that_is_slow_with_its_request_is_left() {
    let server = Server::start().await;
    let mut stream = server.connect(None).await;
    tokio::time::pause();
    let began = Instant::now();
    stream
        .write_all(b"GET /healthz HTTP/1.1\r\nHost: no")
        .await
        .unwrap();
    rest(&mut stream).await;
    assert!(began.elapsed().as_secs() <= 11);
}

#[tokio::test]
async fn an_idle_connection_of_somebody_who_was_let_in_is_closed_after_ninety_seconds() {
    let server = Server::start().await;
    let ann = server.authority.client("ann", &[]);
    let mut stream = server.connect(Some(&ann)).await;
    stream
        .write_all(b"GET /healthz HTTP/1.1\r\nHost: node\r\n\r\n")
        .await
        .unwrap();
    let mut first = [0; 15];
    stream.read_exact(&mut first).await.unwrap();
    assert_eq!(&first, b"HTTP/1.1 200 OK");
    tokio::time::pause();
    let began = Instant::now();
    assert!(rest(&mut stream).await.ends_with("\r\n\r\nok"));
    let seconds = began.elapsed().as_secs();
    assert!((89..=91).contains(&seconds), "{seconds}");
}

#[tokio::test]
async fn the_end_of_the_agent_waits_for_no_idle_connection() {
    let server = Server::start().await;
    let mut idle = server.connect(None).await;
    let mut half = TcpStream::connect(server.address).await.unwrap();
    half.write_all(b"\x16\x03").await.unwrap();
    server.stop().await;
    rest(&mut idle).await;
    rest(&mut half).await;
}
