//! Sessions with SPDY clients: assigns the streams.

use std::{collections::HashMap, io, pin::Pin, sync::Arc, time::Duration};

use rubelet_cri::CriResult;
use tokio::{
    sync::watch,
    task::JoinSet,
    time::{Instant, timeout, timeout_at},
};

use crate::{
    Duplex, PortDialer, RemoteProcess, SessionKind, Sink, StdStreams,
    ending::{SessionEnding, TOLD_WITHIN},
    port_session::{forward_or_end, ports_end},
    process_session::{ClientStreams, serve},
    spdy::{
        connection::{Connection, Limits},
        frame::ResetStatus,
        handle::Role,
        stream::Stream,
    },
    status::StatusForm,
};

/// Time for a client to open the streams of a session, as in the kubelet.
const STREAM_CREATION: Duration = Duration::from_secs(30);

/// Maximum number of streams of a process: five, and a few to be refused one by one.
const PROCESS_STREAMS: usize = 16;

/// Maximum number of streams of forwarded ports: two for each connection.
const PORT_STREAMS: usize = 2048;

/// Stream header: its type.
pub(crate) const STREAM_TYPE: &str = "streamtype";
/// Stream header: the port.
pub(crate) const PORT: &str = "port";
/// Stream header: identifies the connection that the stream belongs to.
pub(crate) const REQUEST_ID: &str = "requestid";

/// Serves exec or attach.
pub(crate) async fn process(
    transport: Duplex,
    (kind, streams): (SessionKind, StdStreams),
    (form, sizes): (StatusForm, bool),
    open: impl Future<Output = CriResult<RemoteProcess>> + Send,
    idle: Duration,
    shutdown: Pin<Box<dyn Future<Output = ()> + Send>>,
) {
    let limits = Limits {
        streams: PROCESS_STREAMS,
        idle,
    };
    let mut connection = Connection::start(transport, Role::Server, limits);
    let client = match wait_for_streams(&mut connection, streams, form, sizes).await {
        Ok(client) => client,
        Err(error) => {
            tracing::debug!(%error, "A session did not begin");
            return;
        }
    };
    let handle = Arc::clone(&connection.handle);
    serve(client, kind, open, handle.ended(), handle.idle(), shutdown).await;
    drop(handle);
    connection.close().await;
}

async fn wait_for_streams(
    connection: &mut Connection,
    streams: StdStreams,
    form: StatusForm,
    sizes: bool,
) -> io::Result<ClientStreams> {
    let until = Instant::now() + STREAM_CREATION;
    let mut wanted: Vec<&str> = vec!["error"];
    for (name, asked) in [
        ("stdin", streams.stdin),
        ("stdout", streams.stdout),
        ("stderr", streams.stderr),
        ("resize", streams.tty && sizes),
    ] {
        wanted.extend(asked.then_some(name));
    }
    let mut found: HashMap<&str, Stream> = HashMap::new();
    while found.len() < wanted.len() {
        let next = timeout_at(until, connection.next()).await;
        let next =
            next.map_err(|_| io::Error::other("timed out waiting for client to create streams"))?;
        let stream = next.ok_or_else(|| io::Error::other("the client closed the connection"))?;
        let name = stream.headers.get(STREAM_TYPE).unwrap_or_default();
        match wanted.iter().find(|wanted| **wanted == name) {
            Some(name) if !found.contains_key(name) => {
                stream.accept()?;
                found.insert(name, stream);
            }
            // A stream of a known type that was not requested; it is not used.
            _ => stream.reset(ResetStatus::RefusedStream),
        }
    }
    let mut sink = |name| found.remove(name).map(|stream| Box::new(stream.sink) as _);
    let (stdout, stderr, error) = (sink("stdout"), sink("stderr"), sink("error"));
    let mut unused: Vec<Box<dyn Sink>> = Vec::new();
    let mut source = |name| {
        let stream = found.remove(name)?;
        unused.push(Box::new(stream.sink));
        Some(Box::new(stream.source) as _)
    };
    let (stdin, resize) = (source("stdin"), source("resize"));
    Ok(ClientStreams {
        stdin,
        resize,
        stdout,
        stderr,
        unused,
        error: error.ok_or_else(|| io::Error::other("there is no stream for errors"))?,
        form,
    })
}

/// Serves port-forward until the client is gone, the session is idle, or the server or the pod stops.
pub(crate) async fn ports(
    transport: Duplex,
    dialer: Arc<dyn PortDialer>,
    idle: Duration,
    shutdown: Pin<Box<dyn Future<Output = ()> + Send>>,
) {
    let limits = Limits {
        streams: PORT_STREAMS,
        idle,
    };
    let mut connection = Connection::start(transport, Role::Server, limits);
    let mut pairs = Pairs::default();
    let mut forwards = JoinSet::new();
    let (tell, told) = watch::channel(None);
    let handle = Arc::clone(&connection.handle);
    let mut ends = std::pin::pin!(ports_end(&*dialer, handle.idle(), shutdown));
    let ending = loop {
        let stream = tokio::select! {
            stream = connection.next() => stream,
            ending = ends.as_mut() => break ending,
            _ = forwards.join_next(), if !forwards.is_empty() => continue,
            () = pairs.expire() => continue,
        };
        let Some(stream) = stream else {
            return;
        };
        if let Some(pair) = pairs.add(stream) {
            forwards.spawn(connect(pair, Arc::clone(&dialer), told.clone()));
        }
    };
    tracing::debug!(%ending, "Ending a port-forward session");
    // Each connection gets the reason as its error, and both of its ends see a reset.
    tell.send_replace(Some(ending));
    let ended = async { while forwards.join_next().await.is_some() {} };
    let _ = timeout(TOLD_WITHIN, ended).await;
    forwards.shutdown().await;
    connection.close().await;
}

/// The two streams of one connection.
struct Pair {
    port: u16,
    data: Stream,
    error: Stream,
}

/// Streams that wait for the other stream of their connection.
#[derive(Default)]
struct Pairs {
    waiting: HashMap<String, (Instant, Stream)>,
}

impl Pairs {
    fn add(&mut self, stream: Stream) -> Option<Pair> {
        let is_error = match stream.headers.get(STREAM_TYPE) {
            Some("error") => true,
            Some("data") => false,
            _ => {
                stream.reset(ResetStatus::ProtocolError);
                return None;
            }
        };
        let port = stream.headers.get(PORT).and_then(|port| port.parse().ok());
        let Some(port) = port.filter(|port| *port > 0) else {
            stream.reset(ResetStatus::ProtocolError);
            return None;
        };
        if stream.accept().is_err() {
            return None;
        }
        // Old clients send no request ID: their error stream comes right before the data stream.
        let id = match stream.headers.get(REQUEST_ID) {
            Some(id) => id.to_owned(),
            None if is_error => stream.id.to_string(),
            None => stream.id.wrapping_sub(2).to_string(),
        };
        let Some((_, other)) = self.waiting.remove(&id) else {
            self.waiting
                .insert(id, (Instant::now() + STREAM_CREATION, stream));
            return None;
        };
        let other_is_error = other.headers.get(STREAM_TYPE) == Some("error");
        if other_is_error == is_error {
            // Two of the same type: the connection is ambiguous.
            stream.reset(ResetStatus::ProtocolError);
            other.reset(ResetStatus::ProtocolError);
            return None;
        }
        let (data, error) = match is_error {
            true => (other, stream),
            false => (stream, other),
        };
        Some(Pair { port, data, error })
    }

    /// Drops the oldest stream if its counterpart has not arrived in time.
    async fn expire(&mut self) {
        let oldest = self.waiting.iter().min_by_key(|(_, (until, _))| *until);
        let Some((id, (until, _))) = oldest else {
            return std::future::pending().await;
        };
        let (id, until) = (id.clone(), *until);
        tokio::time::sleep_until(until).await;
        if let Some((_, stream)) = self.waiting.remove(&id) {
            stream.reset(ResetStatus::Cancel);
        }
    }
}

async fn connect(
    pair: Pair,
    dialer: Arc<dyn PortDialer>,
    mut told: watch::Receiver<Option<SessionEnding>>,
) {
    let Pair { port, data, error } = pair;
    let mut errors = error.sink;
    let client = Duplex {
        source: Box::new(data.source),
        sink: Box::new(data.sink),
    };
    if let Err(text) = forward_or_end(client, port, &*dialer, &mut told).await {
        tracing::debug!(port, error = text, "A forwarded connection failed");
        let _ = errors.write(text.into()).await;
    }
    let _ = errors.close().await;
}
