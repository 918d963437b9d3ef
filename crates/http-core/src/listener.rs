//! The accept loop of a listener.

use std::{future::Future, io, pin::pin, sync::Arc, time::Duration};

use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, UnixListener},
    sync::watch,
    task::JoinSet,
    time::Instant,
};

use crate::{
    connections::{ConnectionSlot, Connections},
    peer::Peer,
    shutdown::Shutdown,
};

/// Delay after an error that the next accept would repeat, such as EMFILE.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);

/// Interval of warnings while connections can't be accepted.
const WARN_AGAIN: Duration = Duration::from_secs(60);

/// Time for responses to end once the server stops.
const DRAIN: Duration = Duration::from_secs(2);

/// Time that a connection which is shutting down may still send.
pub const SHUTDOWN_GRACE: Duration = Duration::from_secs(1);

/// A source of connections.
pub trait Accept {
    /// A connection.
    type Io: AsyncRead + AsyncWrite + Unpin + Send + 'static;
    /// The next connection, and its peer. Cancel safe.
    fn next(&self) -> impl Future<Output = io::Result<(Self::Io, Peer)>> + Send;
}

impl Accept for UnixListener {
    type Io = tokio::net::UnixStream;
    async fn next(&self) -> io::Result<(Self::Io, Peer)> {
        let (stream, _) = self.accept().await?;
        let peer = Peer::of(&stream);
        Ok((stream, peer))
    }
}

impl Accept for TcpListener {
    type Io = tokio::net::TcpStream;
    async fn next(&self) -> io::Result<(Self::Io, Peer)> {
        let (stream, address) = self.accept().await?;
        Ok((stream, Peer::at(address.ip())))
    }
}

/// Accepts connections and serves each that is kept in its own task, until `shutdown` is requested.
/// Then connections are shut down gracefully, within two seconds.
pub async fn accept_loop<L, F>(
    listener: L,
    connections: Arc<Connections>,
    serve: impl Fn(L::Io, Peer, ConnectionSlot, Shutdown) -> F + Send,
    shutdown: impl Future<Output = ()> + Send,
) where
    L: Accept + Sync,
    F: Future<Output = ()> + Send + 'static,
{
    let (stop, stopped) = watch::channel(false);
    let stopped = Shutdown::new(stopped);
    let mut tasks = JoinSet::new();
    let mut shutdown = pin!(shutdown);
    let mut warned: Option<Instant> = None;
    loop {
        // Cancel safe: an accepted stream is only lost with the server.
        let accepted = tokio::select! {
            () = shutdown.as_mut() => break,
            accepted = listener.next() => accepted,
        };
        while tasks.try_join_next().is_some() {}
        match accepted {
            Ok((stream, peer)) => {
                if let Some(slot) = connections.open(&peer) {
                    let id = slot.id();
                    let task = tasks.spawn(serve(stream, peer, slot, stopped.clone()));
                    connections.served_by(id, task);
                }
            }
            Err(error) if is_of_one_connection(&error) => {
                tracing::debug!(%error, "A connection closed before it was accepted");
            }
            Err(error) => {
                if warned.is_none_or(|at| at.elapsed() >= WARN_AGAIN) {
                    tracing::warn!(%error, "Cannot accept connections; closing those of unauthenticated peers");
                    warned = Some(Instant::now());
                }
                connections.shed();
                tokio::time::sleep(ACCEPT_AGAIN).await;
            }
        }
    }
    drop(listener);
    stop.send_replace(true);
    let drained = async { while tasks.join_next().await.is_some() {} };
    if tokio::time::timeout(DRAIN, drained).await.is_err() {
        tracing::debug!("Closed connections with unfinished responses");
    }
}

/// Linux reports pending network errors of the new connection from `accept`; see accept(2).
fn is_of_one_connection(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let of_one = [
        Errno::CONNABORTED,
        Errno::CONNRESET,
        Errno::NETDOWN,
        Errno::PROTO,
        Errno::NOPROTOOPT,
        Errno::HOSTDOWN,
        Errno::NONET,
        Errno::HOSTUNREACH,
        Errno::OPNOTSUPP,
        Errno::NETUNREACH,
        Errno::TIMEDOUT,
        Errno::PERM,
    ];
    Errno::from_io_error(error).is_some_and(|errno| of_one.contains(&errno))
}
