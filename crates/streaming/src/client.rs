//! The client side of a SPDY session: for the commands, and for other runtimes.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, header};
use rubelet_cri::{CriError, CriErrorKind, CriResult};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::mpsc,
    time::timeout,
};

use crate::{
    Duplex, ExitFuture, PortDialer, PortsEnd, RemoteProcess, SessionExit, SessionKind, Sink,
    Source, StdStreams, TerminalSize,
    io::duplex,
    negotiate::{PORT_FORWARD, REMOTE_COMMAND, SPDY, STREAM_PROTOCOL, form_of, has_sizes},
    spdy::{
        connection::{Connection, Limits},
        handle::{Handle, Role},
        header_block::Headers,
        stream::Stream,
    },
    spdy_server::{PORT, REQUEST_ID, STREAM_TYPE},
    status::StatusForm,
};

/// The call that a client's errors name.
const CALL: &str = "session";

/// Longest status that is read.
const LONGEST_STATUS: usize = 64 << 10;

/// Maximum number of concurrent streams.
const STREAMS: usize = 2048;

/// Time that the error of a forwarded connection may arrive after its data.
const LATE_ERROR: Duration = Duration::from_secs(1);

/// The headers of a request for a session over SPDY: `Connection`, `Upgrade` and
/// `X-Stream-Protocol-Version`.
#[must_use]
pub fn upgrade_headers(kind: SessionKind) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(header::UPGRADE, HeaderValue::from_static(SPDY));
    let protocols: &[&str] = match kind {
        SessionKind::PortForward => &[PORT_FORWARD],
        SessionKind::Exec | SessionKind::Attach => &REMOTE_COMMAND,
    };
    for protocol in protocols {
        headers.append(STREAM_PROTOCOL, HeaderValue::from_static(protocol));
    }
    headers
}

/// Opens the streams of an exec or attach session on an upgraded connection. `answer` are the
/// headers of the server's response.
///
/// # Errors
/// The connection is lost.
pub async fn process<I>(io: I, answer: &HeaderMap, streams: StdStreams) -> CriResult<RemoteProcess>
where
    I: AsyncRead + AsyncWrite + Send + 'static,
{
    let version = answer
        .get(STREAM_PROTOCOL)
        .and_then(|value| value.to_str().ok());
    let version = version.unwrap_or_default();
    let connection = start(io);
    let open = |name: &str, asked: bool| -> CriResult<Option<Stream>> {
        let headers = Headers::default().with(STREAM_TYPE, name);
        let opened = asked.then(|| connection.handle.open(headers));
        opened.transpose().map_err(|error| lost(&error))
    };
    let error = open("error", true)?;
    let stdin = open("stdin", streams.stdin)?;
    let stdout = open("stdout", streams.stdout)?;
    let stderr = open("stderr", streams.stderr && !streams.tty)?;
    let resize = open("resize", streams.tty && has_sizes(version))?;
    let source = |stream: Stream| Box::new(OneWay::new(stream)) as Box<dyn Source>;
    let exit: ExitFuture = match error {
        Some(error) => Box::pin(read_status(error, form_of(version))),
        None => Box::pin(std::future::pending()),
    };
    Ok(RemoteProcess {
        stdin: stdin.map(|stream| Box::new(stream.sink) as _),
        stdout: stdout.map(source),
        stderr: stderr.map(source),
        resize: resize.map(|stream| {
            let (sender, sizes) = mpsc::unbounded_channel();
            tokio::spawn(send_sizes(stream, sizes));
            Arc::new(move |size| {
                // The session is over.
                let _ = sender.send(size);
            }) as _
        }),
        exit,
    })
}

fn start<I>(io: I) -> Connection
where
    I: AsyncRead + AsyncWrite + Send + 'static,
{
    let limits = Limits {
        streams: STREAMS,
        idle: Duration::ZERO,
    };
    Connection::start(duplex(io), Role::Client, limits)
}

fn lost(error: &io::Error) -> CriError {
    CriError::new(CALL, CriErrorKind::Unavailable, error.to_string())
}

/// A stream that the server writes to. Go's servers reset all streams at the end of a session
/// instead of finishing each; data before the reset is complete.
struct OneWay {
    source: Box<dyn Source>,
    _sink: Box<dyn Sink>,
}

impl OneWay {
    fn new(stream: Stream) -> Self {
        Self {
            source: Box::new(stream.source),
            _sink: Box::new(stream.sink),
        }
    }
}

#[async_trait]
impl Source for OneWay {
    async fn read(&mut self) -> io::Result<Option<Bytes>> {
        match self.source.read().await {
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => Ok(None),
            read => read,
        }
    }
}

async fn send_sizes(stream: Stream, mut sizes: mpsc::UnboundedReceiver<TerminalSize>) {
    let mut sink = stream.sink;
    while let Some(mut size) = sizes.recv().await {
        // Only the latest size counts.
        while let Ok(newer) = sizes.try_recv() {
            size = newer;
        }
        let Ok(json) = serde_json::to_vec(&size) else {
            continue;
        };
        if sink.write(json.into()).await.is_err() {
            return;
        }
    }
}

async fn read_status(stream: Stream, form: StatusForm) -> CriResult<SessionExit> {
    let mut source = OneWay::new(stream);
    let mut status = Vec::new();
    while let Some(bytes) = source.read().await.map_err(|error| lost(&error))? {
        status.extend_from_slice(&bytes);
        if status.len() > LONGEST_STATUS {
            return Err(CriError::new(
                CALL,
                CriErrorKind::InvalidArgument,
                "the status of the session is too long",
            ));
        }
    }
    match form {
        StatusForm::Json if status.is_empty() => {
            let text = "the session ended without a status";
            Err(CriError::new(CALL, CriErrorKind::Unavailable, text))
        }
        StatusForm::Json => Ok(SessionExit::Status(status.into())),
        StatusForm::Text if status.is_empty() => Ok(SessionExit::Code(0)),
        StatusForm::Text => {
            let text = String::from_utf8_lossy(&status);
            let kind = CriErrorKind::Other(rubelet_cri::Code::Unknown);
            Err(CriError::new(CALL, kind, text))
        }
    }
}

/// Connections through a port-forward session on an upgraded connection. The session ends when this and
/// all its connections are dropped.
pub fn ports<I>(io: I) -> Arc<dyn PortDialer>
where
    I: AsyncRead + AsyncWrite + Send + 'static,
{
    let connection = start(io);
    Arc::new(Ports {
        handle: connection.handle,
        next_request: AtomicU32::new(0),
    })
}

struct Ports {
    handle: Arc<Handle>,
    next_request: AtomicU32,
}

#[async_trait]
impl PortDialer for Ports {
    /// Does not wait for the connection; if it is refused, the source returns the error.
    async fn dial(&self, port: u16) -> CriResult<Duplex> {
        let request = self.next_request.fetch_add(1, Ordering::Relaxed);
        let open = |kind: &str| {
            let headers = Headers::default()
                .with(STREAM_TYPE, kind)
                .with(PORT, port.to_string())
                .with(REQUEST_ID, request.to_string());
            self.handle.open(headers).map_err(|error| lost(&error))
        };
        let (errors, data) = (open("error")?, open("data")?);
        let mut error_sink = errors.sink;
        // The client sends nothing on it.
        error_sink.close().await.map_err(|error| lost(&error))?;
        Ok(Duplex {
            source: Box::new(PortSource {
                data: Box::new(data.source),
                errors: Some(Box::new(errors.source)),
            }),
            sink: Box::new(data.sink),
        })
    }

    async fn ended(&self) -> PortsEnd {
        self.handle.ended().await;
        PortsEnd::ConnectionLost
    }
}

/// The data from a port; at its end, why the port could not be reached.
struct PortSource {
    data: Box<dyn Source>,
    errors: Option<Box<dyn Source>>,
}

#[async_trait]
impl Source for PortSource {
    async fn read(&mut self) -> io::Result<Option<Bytes>> {
        let ended = match self.data.read().await {
            Ok(Some(bytes)) => return Ok(Some(bytes)),
            ended => ended,
        };
        let Some(errors) = &mut self.errors else {
            return ended;
        };
        let error = timeout(LATE_ERROR, errors.read()).await;
        self.errors = None;
        match error {
            Ok(Ok(Some(text))) => {
                let text = String::from_utf8_lossy(&text).into_owned();
                Err(io::Error::other(text))
            }
            _ => ended,
        }
    }
}
