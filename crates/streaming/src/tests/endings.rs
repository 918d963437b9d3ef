//! Each end of a session says why, over each protocol, on this runtime and on one that is proxied.

use std::{future::Future, pin::Pin, sync::Arc, time::Duration};

use http::HeaderMap;
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use rubelet_cri::v1;
use tokio::{net::TcpListener, sync::oneshot, task::AbortHandle, time::timeout};
use tokio_tungstenite::{WebSocketStream, tungstenite::protocol::Role};

use super::{
    fixture::{Echo, Fixture},
    front::{endless, options, serve_one, through},
    websocket::{headers, rest},
};
use crate::{
    ServeOptions, SessionKind, SessionTarget, StdStreams,
    client::{ports, process, upgrade_headers},
};

const PATIENCE: Duration = Duration::from_secs(60);

const STREAMS: StdStreams = StdStreams {
    stdin: true,
    stdout: true,
    stderr: true,
    tty: false,
};

/// How a session is ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Idle,
    Stop,
    RuntimeGone,
}

impl End {
    fn reason(self) -> &'static str {
        match self {
            Self::Idle => "the session had no traffic for 1s",
            Self::Stop => "the node agent is stopping",
            Self::RuntimeGone => "the connection to the container runtime was lost",
        }
    }

    /// Options with which the session ends once `begun` has resolved.
    fn options(self, begun: oneshot::Receiver<()>, runtime: Option<AbortHandle>) -> ServeOptions {
        let stop: Pin<Box<dyn Future<Output = ()> + Send>> = match self {
            Self::Idle => return options(Duration::from_secs(1), std::future::pending()),
            Self::Stop => Box::pin(async move {
                let _ = begun.await;
            }),
            Self::RuntimeGone => Box::pin(async move {
                let _ = begun.await;
                runtime.unwrap().abort();
                std::future::pending::<()>().await;
            }),
        };
        options(Duration::ZERO, stop)
    }
}

fn target(kind: SessionKind) -> SessionTarget {
    let echo = Arc::new(Echo::default());
    match kind {
        SessionKind::PortForward => {
            let request = v1::PortForwardRequest {
                pod_sandbox_id: "s".to_owned(),
                port: vec![80],
            };
            SessionTarget::PortForward(request, echo)
        }
        SessionKind::Exec | SessionKind::Attach => {
            let request = v1::ExecRequest {
                cmd: vec!["sleep".to_owned()],
                stdin: true,
                stdout: true,
                stderr: true,
                ..Default::default()
            };
            SessionTarget::Exec(request, echo)
        }
    }
}

/// A session that ends in that way after the message has come to `begun`.
async fn begin(
    kind: SessionKind,
    end: End,
    proxied: bool,
    of: HeaderMap,
) -> (TokioIo<Upgraded>, HeaderMap, oneshot::Sender<()>) {
    let (begun, begins) = oneshot::channel();
    if !proxied {
        let (io, answer) = through(target(kind), of, end.options(begins, None)).await;
        return (io, answer, begun);
    }
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/token", listener.local_addr().unwrap());
    let runtime = serve_one(listener, target(kind), endless()).abort_handle();
    let remote = SessionTarget::Url {
        url: url.parse().unwrap(),
        kind,
        streams: STREAMS,
        ports: vec![80],
    };
    let (io, answer) = through(remote, of, end.options(begins, Some(runtime))).await;
    (io, answer, begun)
}

const ALL: [(End, bool); 5] = [
    (End::Idle, false),
    (End::Stop, false),
    (End::Idle, true),
    (End::Stop, true),
    (End::RuntimeGone, true),
];

#[tokio::test]
async fn a_client_of_spdy_is_told_why_its_command_is_cut_off() {
    for (end, proxied) in ALL {
        let kind = SessionKind::Exec;
        let (io, answer, begun) = begin(kind, end, proxied, upgrade_headers(kind)).await;
        let mut session = process(io, &answer, STREAMS).await.unwrap();
        session.stdout.as_mut().unwrap().read().await.unwrap();
        begun.send(()).ok();
        let exit = timeout(PATIENCE, session.exit).await.unwrap();
        let told = exit.unwrap().code().unwrap_err().to_string();
        assert!(told.contains(end.reason()), "{end:?} {proxied}: {told}");
    }
}

#[tokio::test]
async fn a_client_of_a_websocket_is_told_why_its_command_is_cut_off() {
    for protocol in ["v5.channel.k8s.io", "v4.channel.k8s.io", "channel.k8s.io"] {
        for (end, proxied) in ALL {
            let (io, _, begun) = begin(SessionKind::Exec, end, proxied, headers(protocol)).await;
            let mut socket = WebSocketStream::from_raw_socket(io, Role::Client, None).await;
            begun.send(()).ok();
            let messages = timeout(PATIENCE, rest(&mut socket)).await.unwrap();
            let last = messages.last().expect("a message");
            let told = String::from_utf8_lossy(last);
            assert!(
                last.starts_with(b"\x03"),
                "{protocol} {end:?} {proxied}: {told:?}"
            );
            assert!(
                told.contains(end.reason()),
                "{protocol} {end:?} {proxied}: {told:?}"
            );
        }
    }
}

#[tokio::test]
async fn each_forwarded_connection_is_told_why_it_is_cut_off() {
    for (end, proxied) in ALL {
        let kind = SessionKind::PortForward;
        let (io, _, begun) = begin(kind, end, proxied, upgrade_headers(kind)).await;
        let dialer = ports(io);
        let mut connection = dialer.dial(80).await.unwrap();
        connection.sink.write("hello".into()).await.unwrap();
        assert_eq!(connection.source.read().await.unwrap().unwrap(), "hello");
        begun.send(()).ok();
        let read = timeout(PATIENCE, connection.source.read()).await.unwrap();
        let told = read.unwrap_err().to_string();
        assert!(told.contains(end.reason()), "{end:?} {proxied}: {told}");
    }
}

#[tokio::test]
async fn each_port_of_a_websocket_is_told_why_it_is_cut_off() {
    for (end, proxied) in ALL {
        let kind = SessionKind::PortForward;
        let (io, _, begun) = begin(kind, end, proxied, headers("v4.channel.k8s.io")).await;
        let mut socket = WebSocketStream::from_raw_socket(io, Role::Client, None).await;
        begun.send(()).ok();
        let messages = timeout(PATIENCE, rest(&mut socket)).await.unwrap();
        let told = String::from_utf8_lossy(messages.last().expect("a message"));
        assert!(told.starts_with('\u{1}'), "{end:?} {proxied}: {told:?}");
        assert!(told.contains(end.reason()), "{end:?} {proxied}: {told:?}");
    }
}

#[tokio::test]
async fn a_client_that_reads_no_reason_does_not_keep_its_session() {
    let fixture = Fixture::new();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/session", listener.local_addr().unwrap());
    let request = v1::ExecRequest {
        cmd: vec!["many".to_owned(), "100000000".to_owned()],
        stdout: true,
        ..Default::default()
    };
    let target = SessionTarget::Exec(request, fixture.echo.clone());
    let idle = options(Duration::from_millis(100), std::future::pending());
    let ended = serve_one(listener, target, idle);
    let (io, answer) = super::fixture::upgraded(&url, upgrade_headers(SessionKind::Exec)).await;
    let streams = StdStreams {
        stdout: true,
        ..StdStreams::default()
    };
    let session = process(io, &answer, streams).await.unwrap();
    timeout(PATIENCE, ended).await.unwrap().unwrap();
    drop(session);
}
