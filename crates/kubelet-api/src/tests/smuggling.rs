//! Requests that two readers could understand differently: a second request hides in the first.

use tokio::io::AsyncWriteExt as _;

use super::server::{Server, rest};

/// What hides: it would be answered by 200 if it were ever taken for a request.
const HIDDEN: &str = "GET /healthz HTTP/1.1\r\nHost: node\r\nAuthorization: Bearer tok-ann\r\n\r\n";

async fn send(server: &Server, request: &str) -> String {
    let mut stream = server.connect(None).await;
    let _ = stream.write_all(request.as_bytes()).await;
    let _ = stream.flush().await;
    rest(&mut stream).await
}

#[tokio::test]
async fn nothing_hides_behind_a_request_with_chunks() {
    let server = Server::start().await;
    let head = "POST /run/a/b/c HTTP/1.1\r\nHost: node\r\nAuthorization: Bearer tok-ann\r\n";
    for between in [
        "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 500\r\n\r\n0\r\n\r\n",
        "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "Transfer-Encoding: identity, chunked\r\n\r\n0\r\n\r\n",
    ] {
        let answers = send(&server, &format!("{head}{between}{HIDDEN}")).await;
        assert_eq!(answers.matches("HTTP/1.1 ").count(), 1, "{between}");
        assert!(answers.starts_with("HTTP/1.1 404 "), "{answers}");
        assert!(answers.contains("connection: close"), "{answers}");
    }
}

#[tokio::test]
async fn requests_that_are_not_well_formed_end_the_connection() {
    let server = Server::start().await;
    let get = "GET /healthz HTTP/1.1\r\nHost: node\r\nAuthorization: Bearer tok-ann\r\n";
    for broken in [
        format!("{get}Content-Length: 1\r\nContent-Length: 2\r\n\r\n{HIDDEN}"),
        format!("{get}Content-Length: 1, 2\r\n\r\n{HIDDEN}"),
        format!("{get}Content-Length: +1\r\n\r\n{HIDDEN}"),
        format!("{get}Content-Length: -1\r\n\r\n{HIDDEN}"),
        format!("{get}Content-Length: 0x1\r\n\r\n{HIDDEN}"),
        format!("{get}Transfer-Encoding: gzip\r\n\r\n{HIDDEN}"),
        format!("{get}Transfer-Encoding: chunked, gzip\r\n\r\n{HIDDEN}"),
        format!("{get}Transfer-Encoding: xchunked\r\n\r\n{HIDDEN}"),
        format!("{get}Transfer-Encoding : chunked\r\n\r\n{HIDDEN}"),
        format!("{get} folded: x\r\n\r\n{HIDDEN}"),
        format!("{get}X: a\rb\r\n\r\n{HIDDEN}"),
        format!("{get}X: a\0b\r\n\r\n{HIDDEN}"),
        format!("{get}Host: other\r\n\r\n{HIDDEN}"),
        format!("GET /healthz HTTP/1.1\r\nAuthorization: Bearer tok-ann\r\n\r\n{HIDDEN}"),
        format!("GET /health z HTTP/1.1\r\nHost: node\r\n\r\n{HIDDEN}"),
        format!("GET /healthz HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{HIDDEN}"),
        format!("GET /healthz\r\n\r\n{HIDDEN}"),
        format!("GET /healthz HTTP/2.0\r\nHost: node\r\n\r\n{HIDDEN}"),
        format!("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n{HIDDEN}"),
        format!("\u{16}\u{3}\u{1}{HIDDEN}"),
    ] {
        let answers = send(&server, &broken).await;
        assert!(!answers.contains(" 200 "), "{broken}\n{answers}");
        assert!(answers.matches("HTTP/1.1 ").count() <= 1, "{broken}");
        assert!(
            answers.is_empty() || answers.starts_with("HTTP/1.1 4"),
            "{broken}\n{answers}"
        );
    }
}

#[tokio::test]
async fn requests_one_after_the_other_are_judged_one_by_one() {
    let server = Server::start().await;
    let by = |token: &str, more: &str| {
        format!(
            "GET /healthz HTTP/1.1\r\nHost: node\r\nAuthorization: Bearer {token}\r\n{more}\r\n"
        )
    };
    let requests = [
        by("tok-ann", ""),
        by("guessed", ""),
        by("tok-bob", ""),
        "GET /healthz HTTP/1.1\r\nHost: node\r\n\r\n".to_owned(),
        by("tok-ann", "Connection: close\r\n"),
    ];
    let answers = send(&server, &requests.concat()).await;
    let codes: Vec<&str> = answers
        .split("HTTP/1.1 ")
        .skip(1)
        .map(|answer| &answer[..3])
        .collect();
    assert_eq!(codes, ["200", "401", "403", "401", "200"]);
}

#[tokio::test]
async fn a_body_is_never_taken_for_a_request() {
    let server = Server::start().await;
    let request = format!(
        "GET /healthz HTTP/1.1\r\nHost: node\r\nAuthorization: Bearer tok-ann\r\nConnection: \
         close\r\nContent-Length: {}\r\n\r\n{HIDDEN}",
        HIDDEN.len()
    );
    let answers = send(&server, &request).await;
    assert_eq!(answers.matches("HTTP/1.1 ").count(), 1);
}
