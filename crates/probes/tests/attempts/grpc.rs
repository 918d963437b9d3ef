//! grpc probes.

use std::time::Duration;

use bytes::Bytes;
use h2::{RecvStream, server::SendResponse};
use http::{HeaderMap, HeaderValue, Request, Response};
use rubelet_api::probe::GrpcCheck;
use rubelet_probes::{ProbeOutcome, ProbeReport};
use tokio::net::TcpStream;

use crate::server::{PLENTY, SHORT, Server, answer, closed_port, deaf_port, prober};

/// What a gRPC server does with a call.
#[derive(Clone, Copy)]
pub(crate) enum Health {
    /// Answers with this status of the service.
    Status(i32),
    /// Ends the call with this code and message, as trailers or in the head.
    Code(&'static str, &'static str, bool),
    /// Is a web server.
    Web,
    /// Answers without a message.
    Empty,
    /// Resets the stream.
    Reset,
    /// Closes the connection.
    Close,
    /// Never answers.
    Hang,
    /// Answers with what it was asked, as the message of an error.
    Echo,
}

impl Health {
    pub(crate) async fn serve(self) -> Server {
        Server::new(move |stream| self.connection(stream)).await
    }

    async fn connection(self, stream: TcpStream) {
        let Ok(mut connection) = h2::server::handshake(stream).await else {
            return;
        };
        while let Some(Ok((request, respond))) = connection.accept().await {
            if matches!(self, Self::Close) {
                return;
            }
            tokio::spawn(self.call(request, respond));
        }
    }

    async fn call(self, request: Request<RecvStream>, mut respond: SendResponse<Bytes>) {
        let head = |pairs: &[(&'static str, &'static str)]| {
            let mut response = Response::new(());
            for (name, value) in pairs {
                response
                    .headers_mut()
                    .insert(*name, HeaderValue::from_static(value));
            }
            response
        };
        const GRPC: (&str, &str) = ("content-type", "application/grpc");
        match self {
            Self::Status(_) | Self::Empty => {
                let mut stream = respond
                    .send_response(head(&[GRPC]), false)
                    .expect("a stream");
                if let Self::Status(status) = self {
                    let status = u8::try_from(status).expect("a small status");
                    let message = vec![0, 0, 0, 0, 2, 8, status];
                    stream.send_data(message.into(), false).expect("a stream");
                }
                stream.send_trailers(trailers("0", "")).expect("a stream");
            }
            Self::Code(code, message, true) => {
                let head = head(&[GRPC, ("grpc-status", code), ("grpc-message", message)]);
                respond.send_response(head, true).expect("a stream");
            }
            Self::Code(code, message, false) => {
                let mut stream = respond
                    .send_response(head(&[GRPC]), false)
                    .expect("a stream");
                stream
                    .send_trailers(trailers(code, message))
                    .expect("a stream");
            }
            Self::Web => {
                let mut head = head(&[("content-type", "text/plain; charset=utf-8")]);
                *head.status_mut() = http::StatusCode::NOT_FOUND;
                let mut stream = respond.send_response(head, false).expect("a stream");
                stream.send_data("not here".into(), true).expect("a stream");
            }
            Self::Reset => respond.send_reset(h2::Reason::PROTOCOL_ERROR),
            Self::Close => {}
            Self::Hang => std::future::pending().await,
            Self::Echo => {
                let (parts, mut body) = request.into_parts();
                let mut data = Vec::new();
                while let Some(Ok(chunk)) = body.data().await {
                    data.extend_from_slice(&chunk);
                }
                let header = |name| parts.headers.get(name).map(|value| value.to_str());
                let text = format!(
                    "{} {} {:?} {:?} {} {data:?}",
                    parts.method,
                    parts.uri.path(),
                    header("user-agent"),
                    header("te"),
                    header("grpc-timeout").is_some()
                );
                let mut stream = respond
                    .send_response(head(&[GRPC]), false)
                    .expect("a stream");
                stream
                    .send_trailers(trailers("3", &text))
                    .expect("a stream");
            }
        }
    }
}

fn trailers(code: &str, message: &str) -> HeaderMap {
    let mut map = HeaderMap::new();
    map.insert("grpc-status", code.parse().expect("a value"));
    map.insert("grpc-message", message.parse().expect("a value"));
    map
}

async fn check(port: u16, service: &str, timeout: Duration) -> ProbeReport {
    let check = GrpcCheck {
        port,
        service: service.into(),
    };
    prober().grpc(&check, "127.0.0.1", timeout).await
}

#[tokio::test]
async fn every_outcome_has_the_kubelets_words() {
    for (health, verdict, output) in [
        (Health::Status(1), ProbeOutcome::Passed, "service healthy"),
        (
            Health::Status(2),
            ProbeOutcome::Failed,
            r#"service unhealthy (responded with "NOT_SERVING")"#,
        ),
        (
            Health::Status(0),
            ProbeOutcome::Failed,
            r#"service unhealthy (responded with "UNKNOWN")"#,
        ),
        (
            Health::Status(3),
            ProbeOutcome::Failed,
            r#"service unhealthy (responded with "SERVICE_UNKNOWN")"#,
        ),
        (
            Health::Code("12", "unknown service grpc.health.v1.Health", true),
            ProbeOutcome::Failed,
            "error: this server does not implement the grpc health protocol \
             (grpc.health.v1.Health): unknown service grpc.health.v1.Health",
        ),
        (
            Health::Code("5", "unknown service", false),
            ProbeOutcome::Failed,
            "error: health rpc probe failed: rpc error: code = NotFound desc = unknown service",
        ),
        (
            Health::Code("4", "too late", true),
            ProbeOutcome::TimedOut,
            "timeout: health rpc did not complete within 10s",
        ),
        (
            Health::Web,
            ProbeOutcome::Failed,
            "error: this server does not implement the grpc health protocol \
             (grpc.health.v1.Health): unexpected HTTP status code received from server: \
             404 (Not Found); transport: received unexpected content-type \
             \"text/plain; charset=utf-8\"",
        ),
        (
            Health::Empty,
            ProbeOutcome::Failed,
            "error: health rpc probe failed: rpc error: code = Internal desc = cardinality \
             violation: received no response message from non-server-streaming RPC",
        ),
        (
            Health::Reset,
            ProbeOutcome::Failed,
            "error: health rpc probe failed: rpc error: code = Internal desc = stream terminated \
             by RST_STREAM with error code: PROTOCOL_ERROR",
        ),
    ] {
        let server = health.serve().await;
        let report = check(server.port, "", PLENTY).await;
        assert_eq!((report.verdict, report.output.as_str()), (verdict, output));
        assert!(report.latency < PLENTY / 2);
    }
}

#[tokio::test]
async fn a_connection_that_breaks_during_the_call_is_unavailable() {
    let server = Health::Close.serve().await;
    let report = check(server.port, "", PLENTY).await;
    assert_eq!(report.verdict, ProbeOutcome::Failed);
    // Whether the server had read everything when it closed decides between the two.
    let beginning = "error: health rpc probe failed: rpc error: code = Unavailable \
                     desc = error reading from server: ";
    let rest = report.output.strip_prefix(beginning).unwrap_or_default();
    assert!(
        rest == "EOF" || rest.ends_with(": connection reset by peer"),
        "{}",
        report.output
    );
}

#[tokio::test]
async fn a_call_names_the_service_and_the_caller() {
    let server = Health::Echo.serve().await;
    let report = check(server.port, "db", PLENTY).await;
    assert_eq!(
        report.output,
        "error: health rpc probe failed: rpc error: code = InvalidArgument desc = \
         POST /grpc.health.v1.Health/Check Some(Ok(\"kube-probe/1.36\")) Some(Ok(\"trailers\")) \
         true [0, 0, 0, 0, 4, 10, 2, 100, 98]"
    );
}

#[tokio::test]
async fn a_call_without_an_answer_is_a_timeout() {
    let server = Health::Hang.serve().await;
    let report = check(server.port, "", SHORT).await;
    assert_eq!(
        (report.verdict, report.output.as_str()),
        (
            ProbeOutcome::TimedOut,
            "timeout: health rpc did not complete within 200ms"
        )
    );
}

/// Shorter than the pause before a connection is tried again.
const NO_SECOND_TRY: Duration = Duration::from_millis(900);

fn unreachable(port: u16, within: &str) -> String {
    format!(
        "timeout: failed to connect service \"127.0.0.1:{port}\" within {within}: \
         context deadline exceeded"
    )
}

#[tokio::test]
async fn silence_before_http2_is_a_timeout_of_the_connection() {
    let server = Server::new(|stream| async move {
        std::future::pending::<()>().await;
        drop(stream);
    })
    .await;
    let report = check(server.port, "", SHORT).await;
    assert_eq!(
        (report.verdict, report.output),
        (ProbeOutcome::TimedOut, unreachable(server.port, "200ms"))
    );
    let (port, _listener, _waiting) = deaf_port().await;
    let report = check(port, "", SHORT).await;
    assert_eq!(
        (report.verdict, report.output),
        (ProbeOutcome::TimedOut, unreachable(port, "200ms"))
    );
}

#[tokio::test]
async fn refusal_and_other_protocols_fail_without_waiting_for_the_timeout() {
    let (port, _socket) = closed_port();
    let report = check(port, "", NO_SECOND_TRY).await;
    assert_eq!(
        (report.verdict, report.output),
        (ProbeOutcome::Failed, unreachable(port, "900ms"))
    );
    assert!(report.latency < NO_SECOND_TRY);
    for text in [answer("400 Bad Request", ""), Vec::new()] {
        let server = Server::new(move |mut stream| {
            let text = text.clone();
            async move {
                use tokio::io::AsyncWriteExt;
                let _ = stream.write_all(&text).await;
            }
        })
        .await;
        let report = check(server.port, "", NO_SECOND_TRY).await;
        assert_eq!(
            (report.verdict, report.output),
            (ProbeOutcome::Failed, unreachable(server.port, "900ms"))
        );
    }
}

#[tokio::test]
async fn a_server_that_comes_up_within_the_timeout_passes() {
    let (port, socket) = closed_port();
    let attempt = tokio::spawn(async move { check(port, "", PLENTY).await });
    tokio::time::sleep(SHORT).await;
    drop(socket);
    let address = format!("127.0.0.1:{port}");
    let _server = Server::on(&address, |stream| Health::Status(1).connection(stream))
        .await
        .expect("the port");
    let report = attempt.await.expect("an attempt");
    assert_eq!(report.verdict, ProbeOutcome::Passed);
    assert!(report.latency >= SHORT);
}
