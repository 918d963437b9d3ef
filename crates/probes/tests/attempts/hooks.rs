//! httpGet hooks.

use rubelet_api::probe::HttpGet;
use rubelet_probes::{ProbeOutcome, ProbeReport};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::server::{PLENTY, SHORT, Server, answer, prober};

async fn hook(get: &HttpGet) -> ProbeReport {
    prober().http_hook(get, "127.0.0.1", PLENTY).await
}

#[tokio::test]
async fn any_answer_passes() {
    for text in [
        answer("200 OK", "well"),
        answer("404 Not Found", "no"),
        answer("500 Internal Server Error", "no"),
        b"HTTP/1.1 302 Found\r\nLocation: http://example.com/\r\n\r\n".to_vec(),
        b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nbroken".to_vec(),
    ] {
        let server = Server::saying(text).await;
        let report = hook(&server.get("/stop")).await;
        assert_eq!(
            (report.verdict, report.output.as_str()),
            (ProbeOutcome::Passed, "")
        );
        let request = &server.requests()[0];
        assert!(
            request.contains("\r\nUser-Agent: kube-lifecycle/1.36\r\n"),
            "{request}"
        );
    }
}

#[tokio::test]
async fn no_answer_fails_with_the_reason() {
    let server = Server::saying("").await;
    let report = hook(&server.get("/stop")).await;
    let expected = format!("Get \"http://127.0.0.1:{}/stop\": EOF", server.port);
    assert_eq!(
        (report.verdict, report.output),
        (ProbeOutcome::Failed, expected)
    );
}

#[tokio::test]
async fn a_hook_that_hangs_is_ended() {
    let server = Server::new(|stream| async move {
        std::future::pending::<()>().await;
        drop(stream);
    })
    .await;
    let report = prober()
        .http_hook(&server.get("/stop"), "127.0.0.1", SHORT)
        .await;
    let expected = format!(
        "Get \"http://127.0.0.1:{}/stop\": context deadline exceeded",
        server.port
    );
    assert_eq!(
        (report.verdict, report.output),
        (ProbeOutcome::TimedOut, expected)
    );
}

/// A server for plain HTTP that answers a TLS handshake like a bad request.
async fn plain(second: &'static str) -> Server {
    Server::new(move |mut stream| async move {
        let mut request = vec![0; 4096];
        let size = stream.read(&mut request).await.unwrap_or_default();
        let is_secret = String::from_utf8_lossy(&request).contains("uthorization");
        let text = match request[..size].starts_with(b"GET ") {
            true if is_secret => "not for me",
            true => second,
            false => "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n",
        };
        let _ = stream.write_all(text.as_bytes()).await;
    })
    .await
}

#[tokio::test]
async fn a_secure_hook_of_a_plain_server_is_tried_again_without_tls_and_secrets() {
    let server = plain("HTTP/1.1 204 No Content\r\n\r\n").await;
    let mut get = HttpGet {
        https: true,
        ..server.get("/stop")
    };
    get.headers.push(("authorization".into(), "secret".into()));
    let report = hook(&get).await;
    let expected = format!(
        "request to HTTPS lifecycle hook 127.0.0.1:{} got HTTP response, \
         retry with HTTP succeeded",
        server.port
    );
    assert_eq!(
        (report.verdict, report.output),
        (ProbeOutcome::Warned, expected)
    );
}

#[tokio::test]
async fn of_two_failures_the_first_one_is_reported() {
    let server = plain("").await;
    let get = HttpGet {
        https: true,
        ..server.get("/stop")
    };
    let report = hook(&get).await;
    let expected = format!(
        "Get \"https://127.0.0.1:{}/stop\": http: server gave HTTP response to HTTPS client",
        server.port
    );
    assert_eq!(
        (report.verdict, report.output),
        (ProbeOutcome::Failed, expected)
    );
}
