//! The URLs that clients of the CRI get for sessions.

use std::net::TcpListener;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Uri};
use rubelet_cri::{CriErrorKind, RuntimeService, v1};
use rubelet_streaming::{SessionExit, SessionKind, StdStreams, client};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

use crate::fixture::{
    Fixture, create, read_all, read_source, remove_pod, run_pod, send, shell, start,
};

/// Opens a session at a URL; the connection and the headers of the answer, or its status line.
async fn open(url: &str, kind: SessionKind) -> Result<(TcpStream, HeaderMap), String> {
    let url: Uri = url.parse().unwrap();
    let authority = url.authority().unwrap();
    assert_eq!(authority.host(), "127.0.0.1");
    let mut socket = TcpStream::connect(authority.as_str()).await.unwrap();
    let mut head = format!("POST {} HTTP/1.1\r\nHost: {authority}\r\n", url.path());
    for (name, value) in &client::upgrade_headers(kind) {
        head += &format!("{name}: {}\r\n", value.to_str().unwrap());
    }
    let head = head + "\r\n";
    socket.write_all(head.as_bytes()).await.unwrap();
    // Byte by byte: what follows the head is not HTTP.
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n\r\n") {
        answer.push(socket.read_u8().await.unwrap());
    }
    let answer = String::from_utf8(answer).unwrap();
    let (status, fields) = answer.split_once("\r\n").unwrap();
    if !status.starts_with("HTTP/1.1 101 ") {
        return Err(status.to_owned());
    }
    let fields = fields.lines().filter_map(|line| line.split_once(": "));
    let headers = fields.map(|(name, value)| {
        let name: HeaderName = name.parse().unwrap();
        (name, HeaderValue::from_str(value).unwrap())
    });
    Ok((socket, headers.collect()))
}

pub(crate) async fn a_client_of_the_cri_has_sessions_by_urls_that_work_once(fixture: &Fixture) {
    let runtime = fixture.runtime().await;
    let pod = fixture.host_network("urls");
    let sandbox = run_pod(&runtime, &pod).await;
    let mut config = shell("main", "read line; echo got $line; sleep 1000");
    config.stdin = true;
    let container = create(&runtime, &sandbox, &pod, config).await;
    start(&runtime, &container).await;
    let streams = StdStreams {
        stdin: true,
        stdout: true,
        stderr: true,
        tty: false,
    };

    let request = v1::ExecRequest {
        container_id: container.clone(),
        cmd: ["/bin/sh", "-c", "cat; exit 6"].map(str::to_owned).into(),
        tty: false,
        stdin: true,
        stdout: true,
        stderr: true,
    };
    let exec = runtime.exec(request.clone()).await.unwrap().url;
    let (socket, headers) = open(&exec, SessionKind::Exec).await.unwrap();
    let mut process = client::process(socket, &headers, streams).await.unwrap();
    send(&mut process, b"fed").await;
    process.stdin.as_mut().unwrap().close().await.unwrap();
    assert_eq!(read_all(&mut process.stdout).await, b"fed");
    let SessionExit::Status(status) = process.exit.await.unwrap() else {
        panic!("a session by a URL ends with a status");
    };
    let status = String::from_utf8(status.to_vec()).unwrap();
    assert!(status.contains("non-zero exit code: 6"), "{status}");
    let again = open(&exec, SessionKind::Exec).await.unwrap_err();
    assert!(again.starts_with("HTTP/1.1 404 "), "{again}");

    let attach = v1::AttachRequest {
        container_id: container.clone(),
        tty: false,
        stdin: true,
        stdout: true,
        stderr: true,
    };
    let attach = runtime.attach(attach).await.unwrap().url;
    let (socket, headers) = open(&attach, SessionKind::Attach).await.unwrap();
    let mut process = client::process(socket, &headers, streams).await.unwrap();
    send(&mut process, b"hello\n").await;
    let got = process.stdout.as_mut().unwrap().read().await.unwrap();
    assert_eq!(&*got.unwrap(), b"got hello\n");

    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let ports = v1::PortForwardRequest {
        pod_sandbox_id: sandbox.clone(),
        port: vec![i32::from(port)],
    };
    let ports = runtime.port_forward(ports).await.unwrap().url;
    let (socket, _) = open(&ports, SessionKind::PortForward).await.unwrap();
    let dialer = client::ports(socket);
    let mut connection = dialer.dial(port).await.unwrap();
    let echo = std::thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        std::io::copy(&mut &stream, &mut &stream).unwrap();
    });
    connection
        .sink
        .write(Bytes::from_static(b"echo"))
        .await
        .unwrap();
    connection.sink.close().await.unwrap();
    assert_eq!(read_source(&mut *connection.source).await, b"echo");
    echo.join().unwrap();

    let nobody = v1::ExecRequest {
        container_id: String::new(),
        ..request
    };
    let refused = runtime.exec(nobody).await.unwrap_err();
    assert_eq!(refused.kind, CriErrorKind::InvalidArgument);
    assert_eq!(refused.message, "missing required container_id");
    runtime.shutdown().await;
    remove_pod(&runtime, &sandbox).await;
}
