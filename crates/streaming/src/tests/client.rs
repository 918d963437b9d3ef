//! Our own client against our own server.

use std::time::Duration;

use http::{HeaderMap, StatusCode, Uri};
use http_body_util::BodyExt as _;
use tokio::time::timeout;

use super::{
    fixture::{Fixture, send, upgraded},
    front::{endless, through},
};
use crate::{
    RemoteProcess, SessionExit, SessionKind, Source, StdStreams, TerminalSize,
    client::{ports, process, upgrade_headers},
};

const STREAMS: StdStreams = StdStreams {
    stdin: true,
    stdout: true,
    stderr: true,
    tty: false,
};

async fn exec(fixture: &Fixture, command: &str) -> RemoteProcess {
    let url = fixture.exec_url(command, false).await;
    let (io, answer) = upgraded(&url, upgrade_headers(SessionKind::Exec)).await;
    process(io, &answer, STREAMS).await.unwrap()
}

async fn all(source: &mut Option<Box<dyn Source>>) -> String {
    let mut text = Vec::new();
    if let Some(source) = source {
        while let Some(bytes) = source.read().await.unwrap() {
            text.extend_from_slice(&bytes);
        }
    }
    String::from_utf8(text).unwrap()
}

#[tokio::test]
async fn input_is_half_closed_and_output_comes_to_its_end() {
    let fixture = Fixture::new();
    for (command, first, second) in [("cat", "hello", ""), ("cat-err", "", "hello")] {
        let mut session = exec(&fixture, command).await;
        let stdin = session.stdin.as_mut().unwrap();
        stdin.write("hello".into()).await.unwrap();
        stdin.close().await.unwrap();
        assert_eq!(all(&mut session.stdout).await, first);
        assert_eq!(all(&mut session.stderr).await, second);
        assert_eq!(session.exit.await.unwrap().code(), Ok(0));
    }
}

#[tokio::test]
async fn exit_codes_and_failures_arrive() {
    let fixture = Fixture::new();
    let session = exec(&fixture, "exit 7").await;
    assert_eq!(session.exit.await.unwrap().code(), Ok(7));
    let session = exec(&fixture, "nonsense").await;
    let failed = session.exit.await.unwrap().code().unwrap_err().to_string();
    assert!(
        failed.contains("nonsense: executable file not found in $PATH"),
        "{failed}"
    );
}

#[tokio::test]
async fn sizes_of_a_terminal_arrive() {
    let fixture = Fixture::new();
    let url = fixture.exec_url("sizes", true).await;
    let (io, answer) = upgraded(&url, upgrade_headers(SessionKind::Exec)).await;
    let streams = StdStreams {
        tty: true,
        stderr: false,
        ..STREAMS
    };
    let mut session = process(io, &answer, streams).await.unwrap();
    let resize = session.resize.clone().unwrap();
    resize(TerminalSize {
        width: 80,
        height: 24,
    });
    let stdout = session.stdout.as_mut().unwrap();
    assert_eq!(stdout.read().await.unwrap().unwrap(), "80x24;");
    resize(TerminalSize::default());
    assert_eq!(session.exit.await.unwrap(), exit_zero());
}

fn exit_zero() -> SessionExit {
    SessionExit::Status(r#"{"metadata":{},"status":"Success"}"#.into())
}

#[tokio::test]
async fn much_output_to_a_slow_reader_is_complete() {
    let fixture = Fixture::new();
    let mut session = exec(&fixture, "many 5000000").await;
    let stdout = session.stdout.as_mut().unwrap();
    let mut total = 0;
    while let Some(bytes) = stdout.read().await.unwrap() {
        total += bytes.len();
        tokio::task::yield_now().await;
    }
    assert_eq!(total, 5_000_000);
    assert_eq!(session.exit.await.unwrap().code(), Ok(0));
}

#[tokio::test]
async fn a_client_that_goes_away_ends_its_session() {
    let fixture = Fixture::new();
    let mut session = exec(&fixture, "sleep").await;
    session.stdout.as_mut().unwrap().read().await.unwrap();
    drop(session);
    let ended = async {
        while fixture.echo.ended.lock().is_empty() {
            tokio::task::yield_now().await;
        }
    };
    timeout(Duration::from_secs(60), ended).await.unwrap();
}

#[tokio::test]
async fn a_server_that_stops_says_so() {
    let fixture = Fixture::new();
    let mut session = exec(&fixture, "sleep").await;
    session.stdout.as_mut().unwrap().read().await.unwrap();
    fixture.server.stop();
    let failed = session.exit.await.unwrap().code().unwrap_err().to_string();
    assert!(failed.contains("the node agent is stopping"), "{failed}");
}

#[tokio::test]
async fn many_connections_are_forwarded_at_a_time() {
    let fixture = Fixture::new();
    let url = fixture.ports_url(&[]).await;
    let (io, _) = upgraded(&url, upgrade_headers(SessionKind::PortForward)).await;
    let dialer = ports(io);
    let one = |number: u32| {
        let dialer = std::sync::Arc::clone(&dialer);
        async move {
            let mut connection = dialer.dial(80).await.unwrap();
            let text = format!("hello {number}");
            connection.sink.write(text.clone().into()).await.unwrap();
            connection.sink.close().await.unwrap();
            let mut source = Some(connection.source);
            assert_eq!(all(&mut source).await, text);
        }
    };
    futures_util::future::join_all((0..200).map(one)).await;
    let mut refused = dialer.dial(1).await.unwrap();
    let error = refused.source.read().await.unwrap_err().to_string();
    assert_eq!(error, "error forwarding port 1 to pod: connection refused");
    one(201).await;
}

#[tokio::test]
async fn a_pod_that_cannot_be_reached_is_an_error_of_each_port() {
    let fixture = Fixture::new();
    let url = fixture.ports_url_of("", &[]).await;
    let (io, _) = upgraded(&url, upgrade_headers(SessionKind::PortForward)).await;
    let dialer = ports(io);
    for port in [80, 81] {
        let mut refused = dialer.dial(port).await.unwrap();
        let error = refused.source.read().await.unwrap_err().to_string();
        let told = format!("error forwarding port {port} to pod: no such sandbox");
        assert_eq!(error, told);
    }
}

#[tokio::test]
async fn a_session_through_another_server_is_passed_on() {
    // The URL of the first server is the target of a second one, as that of another runtime is.
    let fixture = Fixture::new();
    let url: Uri = fixture.exec_url("exit 9", false).await.parse().unwrap();
    let target = crate::SessionTarget::Url {
        url,
        kind: SessionKind::Exec,
        streams: STREAMS,
        ports: Vec::new(),
    };
    let (io, answer) = through(target, upgrade_headers(SessionKind::Exec), endless()).await;
    let session = process(io, &answer, STREAMS).await.unwrap();
    assert_eq!(session.exit.await.unwrap().code(), Ok(9));
}

#[tokio::test]
async fn what_is_no_upgrade_is_refused() {
    let fixture = Fixture::new();
    let url = fixture.exec_url("cat", false).await;
    let response = send(&url, HeaderMap::new()).await;
    assert_eq!(response.status(), StatusCode::BAD_REQUEST);
    let body = response.into_body().collect().await.unwrap().to_bytes();
    assert!(body.starts_with(b"Upgrade request required"), "{body:?}");
}

/// containerd's streaming server, and all others in Go, end a session so.
#[tokio::test]
async fn streams_that_are_reset_behind_their_data_are_complete() {
    use tokio::io::AsyncWriteExt as _;

    use crate::spdy::frame::{ResetStatus, data, reset};
    let (ours, mut theirs) = tokio::io::duplex(64 << 10);
    let mut answer = HeaderMap::new();
    let version = "v4.channel.k8s.io".parse().unwrap();
    answer.insert("x-stream-protocol-version", version);
    let mut session = process(ours, &answer, STREAMS).await.unwrap();
    // The streams for errors, input, output and error output.
    let streams = [1, 3, 5, 7];
    let status = br#"{"status":"Success"}"#;
    let said = [data(1, false, status), data(5, false, b"hello")];
    let resets = streams.map(|stream| reset(stream, ResetStatus::Cancel));
    theirs.write_all(&said.concat()).await.unwrap();
    theirs.write_all(&resets.concat()).await.unwrap();
    assert_eq!(all(&mut session.stdout).await, "hello");
    assert_eq!(all(&mut session.stderr).await, "");
    assert_eq!(session.exit.await.unwrap().code(), Ok(0));
}

#[tokio::test]
async fn a_server_that_goes_away_is_an_error() {
    let (ours, theirs) = tokio::io::duplex(64 << 10);
    let mut answer = HeaderMap::new();
    let version = "v4.channel.k8s.io".parse().unwrap();
    answer.insert("x-stream-protocol-version", version);
    let session = process(ours, &answer, STREAMS).await.unwrap();
    drop(theirs);
    let error = session.exit.await.unwrap_err();
    assert_eq!(error.message, "the connection was lost");
}

/// kubectl closes its input as soon as the server closes that stream, also in the middle of a file.
#[tokio::test]
async fn the_stream_of_the_input_is_not_closed_before_the_end() {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use crate::spdy::{
        frame::{data, syn},
        header_block::{Deflater, Headers},
    };
    let fixture = Fixture::new();
    let url = fixture.exec_url("cat", false).await;
    let (mut io, _) = upgraded(&url, upgrade_headers(SessionKind::Exec)).await;
    let mut deflater = Deflater::default();
    for (id, name) in [(1, "error"), (3, "stdin"), (5, "stdout"), (7, "stderr")] {
        let headers = Headers::default().with("streamType", name).encode();
        let frame = syn(id, false, &deflater.compress(&headers));
        io.write_all(&frame).await.unwrap();
    }
    io.write_all(&data(3, false, b"x")).await.unwrap();
    let (echo, closed) = (data(5, false, b"x"), data(3, true, b""));
    let mut answers = Vec::new();
    let has = |answers: &[u8], frame: &[u8]| answers.windows(frame.len()).any(|at| at == frame);
    while !has(&answers, &echo) {
        let mut bytes = [0; 1024];
        let read = io.read(&mut bytes).await.unwrap();
        assert!(read > 0);
        answers.extend_from_slice(&bytes[..read]);
    }
    assert!(!has(&answers, &closed), "the input was closed");
    io.write_all(&data(3, true, b"")).await.unwrap();
    io.read_to_end(&mut answers).await.unwrap();
    assert!(has(&answers, &closed), "in the end it is");
}
