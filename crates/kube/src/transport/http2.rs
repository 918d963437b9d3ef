//! Connections of HTTP/2 and the streams on them.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::http2::SendRequest;
use parking_lot::Mutex;
use tokio::time::Instant;

/// One connection.
pub(super) struct Connection {
    sender: SendRequest<Full<Bytes>>,
    /// Streams that the server allows at a time, by its last announcement.
    allowed: Arc<AtomicUsize>,
    /// Streams that are open.
    streams: AtomicUsize,
    /// Takes no more streams.
    retired: AtomicBool,
    /// When the last answer came.
    heard: Mutex<Instant>,
}

/// More streams than this go to another connection even where the server would take them.
pub(super) const MAX_STREAMS: u32 = 200;

impl Connection {
    pub(super) fn new(
        sender: SendRequest<Full<Bytes>>,
        allowed: Arc<AtomicUsize>,
        now: Instant,
    ) -> Self {
        Self {
            sender,
            allowed,
            streams: AtomicUsize::new(0),
            retired: AtomicBool::new(false),
            heard: Mutex::new(now),
        }
    }

    fn is_usable(&self) -> bool {
        !self.retired.load(Ordering::Relaxed) && !self.sender.is_closed()
    }

    fn has_free_stream(&self) -> bool {
        let allowed = self
            .allowed
            .load(Ordering::Relaxed)
            .clamp(1, MAX_STREAMS as usize);
        self.streams.load(Ordering::Relaxed) < allowed
    }
}

/// One stream on a connection, from before its request to the end of its answer.
pub(super) struct StreamGuard(Arc<Connection>);

impl StreamGuard {
    pub(super) fn new(connection: &Arc<Connection>) -> Self {
        connection.streams.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(connection))
    }

    pub(super) fn sender(&self) -> SendRequest<Full<Bytes>> {
        self.0.sender.clone()
    }

    /// An answer came.
    pub(super) fn heard(&self, now: Instant) {
        *self.0.heard.lock() = now;
    }

    /// No answer came in time to what was sent at `began`. If none came to anybody else since, the
    /// next request does better with a new connection: pings would find out much later.
    pub(super) fn suspect(&self, began: Instant) {
        if *self.0.heard.lock() <= began {
            self.0.retired.store(true, Ordering::Relaxed);
        }
    }
}

impl Drop for StreamGuard {
    fn drop(&mut self) {
        self.0.streams.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The connections of one purpose.
#[derive(Default)]
pub(super) struct ConnectionPool {
    connections: Mutex<Vec<Arc<Connection>>>,
    /// Held while connecting, so that callers who find no connection make one between them.
    pub(super) dialing: tokio::sync::Mutex<()>,
}

impl ConnectionPool {
    /// A stream on the fullest connection that has room, so that the others can drain. Connections
    /// without streams are dropped.
    pub(super) fn pick(&self) -> Option<StreamGuard> {
        let mut connections = self.connections.lock();
        connections.retain(|connection| connection.is_usable());
        let streams = |connection: &Arc<Connection>| connection.streams.load(Ordering::Relaxed);
        let best = connections
            .iter()
            .filter(|connection| connection.has_free_stream())
            .max_by_key(|connection| streams(connection))
            .cloned()?;
        connections.retain(|connection| Arc::ptr_eq(connection, &best) || streams(connection) > 0);
        Some(StreamGuard::new(&best))
    }

    /// Keeps a connection, if `wanted` still returns true.
    pub(super) fn add(&self, connection: Arc<Connection>, wanted: impl FnOnce() -> bool) {
        let mut connections = self.connections.lock();
        if wanted() {
            connections.push(connection);
        }
    }

    pub(super) fn clear(&self) {
        let mut connections = self.connections.lock();
        connections.clear();
    }
}
