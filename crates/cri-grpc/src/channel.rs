//! One HTTP/2 connection over a unix socket, opened on demand and reopened after a loss.
//!
//! Never waits on purpose: a call that cannot connect fails at once, and its caller decides when to
//! retry.

use std::{
    error::Error as _,
    future::Future,
    io,
    path::{Path, PathBuf},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use http::{Request, Response};
use http_body_util::{BodyExt, combinators::MapErr};
use hyper::{body::Incoming, client::conn::http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::{net::UnixStream, sync::Mutex};
use tonic::{Status, body::Body};
use tower::Service;

/// How much the runtime may send before we have read it, in bytes: data in flight uses our memory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Windows {
    /// Of one response.
    pub(crate) stream: u32,
    /// Of all responses together.
    pub(crate) connection: u32,
}

impl Windows {
    /// For unary responses. Small, because the socket is local.
    pub(crate) const CALLS: Self = Self {
        stream: 64 * 1024,
        connection: 256 * 1024,
    };
}

/// A runtime's error message is sent in a header; containerd's can quote whole files.
const HEADER_LIST_SIZE: u32 = 256 * 1024;

/// Outgoing requests are small; this limits the queue of one stream.
const SEND_BUFFER: usize = 64 * 1024;

/// A handle on the connection. Clones share it.
#[derive(Clone)]
pub(crate) struct Channel(Arc<ChannelState>);

struct ChannelState {
    socket: PathBuf,
    windows: Windows,
    /// Locked while connecting, so that concurrent callers open one connection.
    connection: Mutex<Option<Connection>>,
}

#[derive(Clone)]
struct Connection {
    /// How many connections this channel had before.
    number: u64,
    sender: http2::SendRequest<Body>,
}

/// A response that reports an interrupted body as an unavailable runtime.
type RpcResponse = Response<MapErr<Incoming, fn(hyper::Error) -> Status>>;

impl Channel {
    pub(crate) fn new(socket: PathBuf, windows: Windows) -> Self {
        Self(Arc::new(ChannelState {
            socket,
            windows,
            connection: Mutex::new(None),
        }))
    }

    pub(crate) fn socket(&self) -> &Path {
        &self.0.socket
    }

    /// The number of the connection for the next call. Connects if necessary.
    pub(crate) async fn connection(&self) -> Result<u64, Status> {
        Ok(self.0.connection().await?.number)
    }

    async fn send(self, request: Request<Body>) -> Result<RpcResponse, Status> {
        let mut sender = self.0.connection().await?.sender;
        let answer = match sender.try_send_request(request).await {
            Ok(answer) => answer,
            Err(mut failure) => {
                // hyper returns the request if no byte of it was sent: the connection was just
                // closed.
                let Some(unsent) = failure.take_message() else {
                    return Err(lost(&failure.into_error()));
                };
                let mut sender = self.0.connection().await?.sender;
                sender
                    .try_send_request(unsent)
                    .await
                    .map_err(|failure| lost(&failure.into_error()))?
            }
        };
        Ok(answer.map(|body| body.map_err((|error| lost(&error)) as fn(hyper::Error) -> Status)))
    }
}

impl ChannelState {
    async fn connection(&self) -> Result<Connection, Status> {
        let mut connection = self.connection.lock().await;
        let number = match connection.as_ref() {
            Some(last) if !last.sender.is_closed() => return Ok(last.clone()),
            Some(last) => last.number + 1,
            None => 0,
        };
        let sender = self.connect().await?;
        Ok(connection.insert(Connection { number, sender }).clone())
    }

    async fn connect(&self) -> Result<http2::SendRequest<Body>, Status> {
        let stream = UnixStream::connect(&self.socket).await.map_err(|error| {
            let socket = self.socket.display();
            Status::unavailable(format!("cannot connect to {socket}: {}", reason(&error)))
        })?;
        let (sender, connection) = http2::Builder::new(TokioExecutor::new())
            .initial_stream_window_size(self.windows.stream)
            .initial_connection_window_size(self.windows.connection)
            .max_header_list_size(HEADER_LIST_SIZE)
            .max_send_buf_size(SEND_BUFFER)
            .handshake(TokioIo::new(stream))
            .await
            .map_err(|error| lost(&error))?;
        tracing::debug!(socket = %self.socket.display(), "Connected to the runtime");
        // Ends when the last sender is dropped or the runtime closes the socket.
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "Connection to the runtime failed");
            }
        });
        Ok(sender)
    }
}

/// The message for an operator about a failed connect.
fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "no such socket; is the runtime running?".to_owned(),
        io::ErrorKind::ConnectionRefused => {
            "nobody listens there; is the runtime running?".to_owned()
        }
        io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        _ => error.to_string(),
    }
}

fn lost(error: &hyper::Error) -> Status {
    let cause = error
        .source()
        .map(|cause| format!(" ({cause})"))
        .unwrap_or_default();
    Status::unavailable(format!("connection to the runtime lost: {error}{cause}"))
}

impl Service<Request<Body>> for Channel {
    type Response = RpcResponse;
    type Error = Status;
    type Future = Pin<Box<dyn Future<Output = Result<RpcResponse, Status>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Status>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        Box::pin(self.clone().send(request))
    }
}
