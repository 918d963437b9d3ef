//! A client of sessions on the socket, cheap enough for thousands of them: over SPDY, and over WebSockets.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue};
use rubelet_streaming::client::{ports, process, upgrade_headers};
use rubelet_streaming::{PortDialer, RemoteProcess, SessionKind, StdStreams};
use rubelet_testbed::Agent;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::time::timeout;

/// What a request for a WebSocket has beside its protocol.
const WEB_SOCKET: &str = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
     Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";

/// Input and output, without a terminal.
pub(crate) const PIPES: StdStreams = StdStreams {
    stdin: true,
    stdout: true,
    stderr: false,
    tty: false,
};

/// The channel of the input in a WebSocket.
pub(crate) const STDIN: u8 = 0;
/// The channel of the output.
pub(crate) const STDOUT: u8 = 1;
/// The channel of the status.
pub(crate) const STATUS: u8 = 3;
/// The first byte of a message that closes a channel.
pub(crate) const CLOSE: u8 = 255;

/// Sessions with the container `main` of one pod.
pub(crate) struct SessionClient {
    socket: PathBuf,
    pod: String,
}

impl SessionClient {
    pub(crate) fn new(agent: &Agent, pod: &str) -> Self {
        Self {
            socket: agent.api_socket(),
            pod: agent.full_name(pod),
        }
    }

    /// Executes a command without arguments.
    pub(crate) async fn exec(&self, command: &str, streams: StdStreams) -> RemoteProcess {
        let path = format!("exec?command={command}&{}", query(streams));
        self.process(SessionKind::Exec, &path, streams).await
    }

    /// Attaches to the container.
    pub(crate) async fn attach(&self) -> RemoteProcess {
        let path = format!("attach?{}", query(PIPES));
        self.process(SessionKind::Attach, &path, PIPES).await
    }

    async fn process(&self, kind: SessionKind, path: &str, streams: StdStreams) -> RemoteProcess {
        let (stream, answer) = self.spdy(kind, path).await;
        process(stream, &answer, streams).await.unwrap()
    }

    /// Forwards ports.
    pub(crate) async fn port_forward(&self) -> Arc<dyn PortDialer> {
        ports(self.spdy(SessionKind::PortForward, "portforward").await.0)
    }

    /// Opens a session over a WebSocket, such as `exec?command=cat`.
    pub(crate) async fn web_socket(&self, path: &str, protocol: &str) -> WebSocket {
        let headers = format!("{WEB_SOCKET}Sec-WebSocket-Protocol: {protocol}\r\n");
        let (stream, _) = self.upgraded("GET", path, &headers).await;
        let (reader, writer) = stream.into_split();
        WebSocket { reader, writer }
    }

    async fn spdy(&self, kind: SessionKind, path: &str) -> (UnixStream, HeaderMap) {
        let headers = upgrade_headers(kind);
        let line = |(name, value): (&HeaderName, &HeaderValue)| {
            format!("{name}: {}\r\n", value.to_str().unwrap())
        };
        let headers: String = headers.iter().map(line).collect();
        self.upgraded("POST", path, &headers).await
    }

    async fn upgraded(&self, method: &str, path: &str, headers: &str) -> (UnixStream, HeaderMap) {
        let mut stream = UnixStream::connect(&self.socket).await.unwrap();
        let pod = &self.pod;
        let request = format!(
            "{method} /api/v1/namespaces/default/pods/{pod}/{path} HTTP/1.1\r\nHost: node\r\n{headers}\r\n"
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await.unwrap());
        }
        let head = String::from_utf8(head).unwrap();
        assert!(head.starts_with("HTTP/1.1 101 "), "{path}: {head}");
        let lines = head.lines().filter_map(|line| line.split_once(": "));
        let lines = lines.map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()));
        (
            stream,
            lines
                .collect::<Vec<(HeaderName, HeaderValue)>>()
                .into_iter()
                .collect(),
        )
    }
}

fn query(streams: StdStreams) -> String {
    format!(
        "stdin={}&stdout={}&tty={}",
        streams.stdin, streams.stdout, streams.tty
    )
}

/// Sends something, again each second, until something is shown. containerd may read the input of an
/// attachment before it has attached the output: what it causes is not shown then.
pub(crate) async fn until_shown(shown: impl Future<Output = ()>, mut send: impl AsyncFnMut()) {
    let mut shown = std::pin::pin!(shown);
    loop {
        send().await;
        // Cancel safety: the wait is pinned and continues.
        if timeout(AGAIN, &mut shown).await.is_ok() {
            return;
        }
    }
}

/// Time after which input is sent again.
const AGAIN: Duration = Duration::from_secs(1);

/// A WebSocket with channels.
pub(crate) struct WebSocket {
    reader: OwnedReadHalf,
    writer: OwnedWriteHalf,
}

impl WebSocket {
    /// Sends a short message on a channel.
    pub(crate) async fn send(&mut self, channel: u8, bytes: &[u8]) {
        send(&mut self.writer, channel, bytes).await;
    }

    /// Sends a short message on a channel, and waits for this text on another.
    pub(crate) async fn exchange(&mut self, to: (u8, &[u8]), from: (u8, &str)) {
        let (reader, writer) = (&mut self.reader, &mut self.writer);
        let shown = async {
            let (mut shown, mut others) = (String::new(), String::new());
            while !shown.contains(from.1) {
                match message(reader).await {
                    Some((channel, piece)) if channel == from.0 => shown += &piece,
                    Some((_, piece)) => others += &piece,
                    None => {
                        panic!("the session ended early: {shown:?}, other channels: {others:?}")
                    }
                }
            }
        };
        until_shown(shown, async || send(writer, to.0, to.1).await).await;
    }

    /// Waits for the end of the session, and of the connection.
    pub(crate) async fn ends(mut self) -> String {
        let mut status = String::new();
        while let Some((channel, text)) = message(&mut self.reader).await {
            if channel == STATUS {
                status += &text;
            }
        }
        status
    }
}

async fn send(writer: &mut OwnedWriteHalf, channel: u8, bytes: &[u8]) {
    let length = u8::try_from(bytes.len() + 1).unwrap();
    assert!(length < 126, "a longer message has another form");
    // The mask is zeros, which leaves everything as it is.
    let mut frame = vec![0x82, 0x80 | length, 0, 0, 0, 0, channel];
    frame.extend(bytes);
    writer.write_all(&frame).await.unwrap();
}

/// The next message that is not empty, and its channel; `None` at the end.
async fn message(reader: &mut OwnedReadHalf) -> Option<(u8, String)> {
    const CLOSE_FRAME: u8 = 8;
    loop {
        let kind = reader.read_u8().await.ok()? & 0x0f;
        let length = match reader.read_u8().await.ok()? {
            126 => usize::from(reader.read_u16().await.ok()?),
            127 => panic!("a message of more than 64 KiB"),
            short => short.into(),
        };
        let mut bytes = vec![0; length];
        reader.read_exact(&mut bytes).await.ok()?;
        if kind == CLOSE_FRAME {
            return None;
        }
        if let [channel, text @ ..] = bytes.as_slice()
            && !text.is_empty()
        {
            return Some((*channel, String::from_utf8_lossy(text).into_owned()));
        }
    }
}
