//! httpGet probes of servers that are slow, silent, or speak something else.

use rubelet_probes::ProbeOutcome;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::server::{PLENTY, SHORT, Server, deaf_port, prober};

/// Reads a request, writes this, and keeps the connection open.
async fn say_and_hang(mut stream: TcpStream, text: &[u8]) {
    let _ = stream.read(&mut [0; 1024]).await;
    let _ = stream.write_all(text).await;
    std::future::pending::<()>().await;
}

/// Reads a request, writes this, and resets the connection.
async fn say_and_reset(mut stream: TcpStream, text: &[u8]) {
    let _ = stream.read(&mut [0; 1024]).await;
    let _ = stream.write_all(text).await;
    tokio::time::sleep(SHORT / 4).await;
    let _ = stream.set_zero_linger();
}

#[tokio::test]
async fn silence_is_a_timeout_wherever_it_begins() {
    const HEADERS: &str =
        "context deadline exceeded (Client.Timeout exceeded while awaiting headers)";
    for text in [&b""[..], b"HTT", b"HTTP/1.1 200 OK\r\nContent-Le"] {
        let server = Server::new(move |stream| say_and_hang(stream, text)).await;
        let report = server.probe("/", SHORT).await;
        let expected = format!("Get \"http://127.0.0.1:{}/\": {HEADERS}", server.port);
        assert_eq!(
            (report.verdict, report.output),
            (ProbeOutcome::TimedOut, expected)
        );
        assert!(report.latency >= SHORT);
    }
    let (port, _listener, _waiting) = deaf_port().await;
    let mut get = Server::saying("").await.get("/");
    get.port = rubelet_api::probe::TargetPort::Number(port);
    let report = prober().http(&get, "127.0.0.1", SHORT).await;
    let expected = format!("Get \"http://127.0.0.1:{port}/\": {HEADERS}");
    assert_eq!(
        (report.verdict, report.output),
        (ProbeOutcome::TimedOut, expected)
    );
}

#[tokio::test]
async fn a_body_that_breaks_off_is_no_result() {
    const BEGINNING: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nbegin";
    let server = Server::new(|stream| say_and_hang(stream, BEGINNING)).await;
    let report = server.probe("/", SHORT).await;
    assert_eq!(
        (report.verdict, report.output.as_str()),
        (
            ProbeOutcome::Errored,
            "context deadline exceeded (Client.Timeout or context cancellation while reading body)"
        )
    );
    let server = Server::saying(BEGINNING).await;
    let report = server.probe("/", PLENTY).await;
    assert_eq!(
        (report.verdict, report.output.as_str()),
        (ProbeOutcome::Errored, "unexpected EOF")
    );
    let server = Server::new(|stream| say_and_reset(stream, BEGINNING)).await;
    let report = server.probe("/", PLENTY).await;
    assert_eq!(report.verdict, ProbeOutcome::Errored);
    assert_reset(&report.output, server.port, "");
}

#[tokio::test]
async fn a_connection_that_breaks_before_the_answer_is_a_failure() {
    let about = |port| format!("Get \"http://127.0.0.1:{port}/\": ");
    for (text, expected) in [
        ("", "EOF"),
        (
            "HTTP/1.1 200 OK\r\nContent-Le",
            "net/http: HTTP/1.x transport connection broken: unexpected EOF",
        ),
    ] {
        let server = Server::saying(text).await;
        let report = server.probe("/", PLENTY).await;
        assert_eq!(report.verdict, ProbeOutcome::Failed);
        assert_eq!(report.output, about(server.port) + expected);
    }
    for (text, prefix) in [
        (&b""[..], ""),
        (
            b"HTTP/1.1 200 OK\r\nContent-Le",
            "net/http: HTTP/1.x transport connection broken: ",
        ),
    ] {
        let server = Server::new(move |stream| say_and_reset(stream, text)).await;
        let report = server.probe("/", PLENTY).await;
        assert_eq!(report.verdict, ProbeOutcome::Failed);
        assert_reset(&report.output, server.port, &(about(server.port) + prefix));
    }
}

/// The text of a reset names both ends, and the own port is a new one each time.
fn assert_reset(output: &str, port: u16, prefix: &str) {
    let beginning = format!("{prefix}read tcp 127.0.0.1:");
    let end = format!("->127.0.0.1:{port}: read: connection reset by peer");
    assert!(
        output.starts_with(&beginning) && output.ends_with(&end),
        "{output}"
    );
}

#[tokio::test]
async fn what_is_not_http_is_quoted() {
    const BROKEN: &str = "net/http: HTTP/1.x transport connection broken: ";
    for (text, expected) in [
        (
            &b"\x15\x03\x01\x00\x02\x02\x16"[..],
            r#"malformed HTTP response "\x15\x03\x01\x00\x02\x02\x16""#,
        ),
        (
            b"220 mail.example ESMTP\r\n",
            r#"malformed HTTP response "220 mail.example ESMTP""#,
        ),
        (
            b"HTTP/1.1 abc OK\r\n\r\n",
            r#"malformed HTTP status code "abc""#,
        ),
        (
            b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
            "malformed MIME header",
        ),
    ] {
        let server = Server::saying(text).await;
        let report = server.probe("/", PLENTY).await;
        let about = format!("Get \"http://127.0.0.1:{}/\": ", server.port);
        assert_eq!(
            (report.verdict, report.output),
            (ProbeOutcome::Failed, about + BROKEN + expected)
        );
    }
}

#[tokio::test]
async fn a_banner_that_comes_before_the_request_is_quoted() {
    let server = Server::new(|mut stream| async move {
        let _ = stream.write_all(b"SSH-2.0-OpenSSH_9.2\r\n").await;
        let _ = stream.read_to_end(&mut Vec::new()).await;
    })
    .await;
    let report = server.probe("/", PLENTY).await;
    assert_eq!(report.verdict, ProbeOutcome::Failed);
    assert!(
        report
            .output
            .ends_with(r#"malformed HTTP response "SSH-2.0-OpenSSH_9.2""#),
        "{}",
        report.output
    );
}

#[tokio::test]
async fn endless_headers_are_cut_off() {
    let server = Server::saying(format!("HTTP/1.1 200 OK\r\nX: {}", "x".repeat(200_000))).await;
    let report = server.probe("/", PLENTY).await;
    let expected = format!(
        "Get \"http://127.0.0.1:{}/\": \
         net/http: server response headers exceeded 65536 bytes; aborted",
        server.port
    );
    assert_eq!(
        (report.verdict, report.output),
        (ProbeOutcome::Failed, expected)
    );
}

#[tokio::test]
async fn a_change_of_protocol_is_no_success() {
    let server = Server::saying(
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
    )
    .await;
    let mut get = server.get("/");
    get.headers.push(("Connection".into(), "upgrade".into()));
    get.headers.push(("Upgrade".into(), "x".into()));
    let report = prober().http(&get, "127.0.0.1", PLENTY).await;
    assert_eq!(report.verdict, ProbeOutcome::Failed);
    assert_eq!(report.output, "HTTP probe failed with statuscode: 101");
}
