//! Whole sessions whose client sends whatever it likes behind a good handshake: frames of SPDY, frames
//! and messages of WebSockets, channels, terminal sizes. A session ends when its client does.

#![no_main]

use std::{convert::Infallible, sync::Arc, time::Duration};

use async_trait::async_trait;
use http::Request;
use http_body_util::Full;
use hyper::{server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use libfuzzer_sys::fuzz_target;
use rubelet_cri::{CriResult, v1};
use rubelet_streaming::{
    Duplex, FdSink, FdSource, PortDialer, RemoteProcess, ServeOptions, SessionExit, SessionTarget,
    Sessions, upgrade,
};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

/// The protocols, by the first byte of the input.
const PROTOCOLS: [(&str, &str, bool); 8] = [
    ("SPDY/3.1", "v4.channel.k8s.io", true),
    ("SPDY/3.1", "channel.k8s.io", true),
    ("SPDY/3.1", "portforward.k8s.io", false),
    ("websocket", "v5.channel.k8s.io", true),
    ("websocket", "v4.base64.channel.k8s.io", true),
    ("websocket", "channel.k8s.io", true),
    ("websocket", "v4.channel.k8s.io", false),
    ("websocket", "SPDY/3.1+portforward.k8s.io", false),
];

fuzz_target!(|data: &[u8]| {
    let Some((first, bytes)) = data.split_first() else {
        return;
    };
    let protocol = PROTOCOLS[usize::from(*first) % PROTOCOLS.len()];
    // Time is paused: waits for a client that says nothing more cost nothing.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .expect("a runtime");
    runtime.block_on(session(protocol, bytes));
});

async fn session((upgrade, protocol, is_process): (&str, &str, bool), bytes: &[u8]) {
    let (mut client, server) = tokio::io::duplex(1 << 20);
    let server = tokio::spawn(serve(server, is_process));
    let head = format!(
        "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: {upgrade}\r\n\
         X-Stream-Protocol-Version: {protocol}\r\nSec-WebSocket-Version: 13\r\n\
         Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: {protocol}\r\n\r\n"
    );
    client
        .write_all(head.as_bytes())
        .await
        .expect("the server reads");
    let _ = client.write_all(bytes).await;
    let head = response_head(&mut client).await;
    assert!(
        head.starts_with(b"HTTP/1.1 101 "),
        "{}",
        String::from_utf8_lossy(&head)
    );
    let _ = client.shutdown().await;
    let _ = client.read_to_end(&mut Vec::new()).await;
    drop(client);
    server.await.expect("nothing panics");
}

/// What the server says up to its empty line. A client that closes its half before that has given the
/// request up, and may get no answer.
async fn response_head(client: &mut tokio::io::DuplexStream) -> Vec<u8> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        match client.read_u8().await {
            Ok(byte) => head.push(byte),
            Err(_) => break,
        }
    }
    head
}

async fn serve(io: tokio::io::DuplexStream, is_process: bool) {
    let begun = std::sync::Mutex::new(None);
    let service = service_fn(|request: Request<hyper::body::Incoming>| {
        let begun = &begun;
        async move {
            let sessions: Arc<dyn Sessions> = Arc::new(Echo);
            let target = match is_process {
                true => SessionTarget::Exec(exec(), sessions),
                false => SessionTarget::PortForward(ports(), sessions),
            };
            let options = ServeOptions {
                idle_timeout: Duration::from_secs(60),
                shutdown: Box::pin(std::future::pending()),
                link: None,
            };
            let upgrade = upgrade(request, target, options).await;
            *begun.lock().expect("nothing panics") = upgrade.session;
            Ok::<_, Infallible>(upgrade.response.map(Full::new))
        }
    });
    let served = http1::Builder::new().serve_connection(TokioIo::new(io), service);
    let _ = served.with_upgrades().await;
    let session = begun.into_inner().expect("nothing panics");
    if let Some(session) = session {
        session.await;
    }
}

fn exec() -> v1::ExecRequest {
    v1::ExecRequest {
        stdin: true,
        stdout: true,
        stderr: true,
        ..Default::default()
    }
}

fn ports() -> v1::PortForwardRequest {
    v1::PortForwardRequest {
        port: vec![80, 81],
        ..Default::default()
    }
}

/// Copies input to output.
struct Echo;

fn echo() -> Duplex {
    let (reader, writer) = rustix::pipe::pipe().expect("a pipe");
    Duplex {
        source: Box::new(FdSource::new(reader, None).expect("a source")),
        sink: Box::new(FdSink::new(writer).expect("a sink")),
    }
}

#[async_trait]
impl Sessions for Echo {
    async fn exec(&self, _: v1::ExecRequest) -> CriResult<RemoteProcess> {
        let Duplex { source, sink } = echo();
        Ok(RemoteProcess {
            stdin: Some(sink),
            stdout: Some(source),
            stderr: None,
            resize: Some(Arc::new(|_| {})),
            exit: Box::pin(async { Ok(SessionExit::Code(0)) }),
        })
    }

    async fn attach(&self, _: v1::AttachRequest) -> CriResult<RemoteProcess> {
        self.exec(v1::ExecRequest::default()).await
    }

    async fn port_forward(&self, _: &str) -> CriResult<Arc<dyn PortDialer>> {
        Ok(Arc::new(Self))
    }
}

#[async_trait]
impl PortDialer for Echo {
    async fn dial(&self, _: u16) -> CriResult<Duplex> {
        Ok(echo())
    }
}
