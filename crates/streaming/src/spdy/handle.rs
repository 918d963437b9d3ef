//! What the streams of a connection and its task share.

use std::{collections::HashMap, io, sync::Arc, time::Duration};

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::{
    sync::{mpsc, watch},
    task::AbortHandle,
    time::Instant,
};

use super::outgoing::{ControlQueue, DataFrame};
use crate::{idle::idle, inbound::Inbound};

/// The side of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Client,
    Server,
}

/// Keeps the task of a connection alive.
pub(crate) struct Handle {
    pub(super) inner: Arc<Inner>,
    pub(super) data: mpsc::Sender<DataFrame>,
    pub(super) task: Mutex<Option<AbortHandle>>,
}

impl Drop for Handle {
    fn drop(&mut self) {
        if let Some(task) = self.task.get_mut().take() {
            task.abort();
        }
    }
}

/// State that the task and the streams share.
pub(super) struct Inner {
    pub(super) control: ControlQueue,
    pub(super) streams: Mutex<Streams>,
    pub(super) role: Role,
    pub(super) most_streams: usize,
    pub(super) idle: Duration,
    pub(super) used: Mutex<Instant>,
    pub(super) ended: watch::Sender<bool>,
}

#[derive(Default)]
pub(super) struct Streams {
    pub(super) open: HashMap<u32, Inbound>,
    pub(super) last_local: u32,
    pub(super) last_remote: u32,
    /// No new data is expected.
    pub(super) closing: bool,
}

impl Handle {
    pub(super) async fn send(&self, frame: DataFrame) -> io::Result<()> {
        let sent = self.data.send(frame).await;
        sent.map_err(|_| io::Error::new(io::ErrorKind::BrokenPipe, "the connection was lost"))
    }

    /// Resolves when the connection has ended.
    pub(crate) async fn ended(&self) {
        // `self` holds the sender, so this can't fail.
        let _ = self.inner.ended.subscribe().wait_for(|ended| *ended).await;
    }

    /// Resolves when the connection is idle, with the timeout. What is sent then is no longer idle.
    pub(crate) async fn idle(&self) -> Duration {
        idle(&self.inner.used, self.inner.idle).await;
        self.inner.idle
    }
}

impl Inner {
    pub(super) fn touch(&self) {
        *self.used.lock() = Instant::now();
    }

    /// Both halves of a stream are dropped.
    pub(super) fn forget(&self, id: u32) {
        self.streams.lock().open.remove(&id);
    }

    pub(super) fn inbound(&self, id: u32) -> Option<mpsc::Sender<Bytes>> {
        let streams = self.streams.lock();
        let open = streams.open.get(&id).filter(|_| !streams.closing)?;
        open.sender()
    }

    pub(super) fn finish(&self, id: u32) {
        if let Some(stream) = self.streams.lock().open.get_mut(&id) {
            stream.finish();
        }
    }

    pub(super) fn reset(&self, id: u32) {
        if let Some(stream) = self.streams.lock().open.get_mut(&id) {
            stream.reset();
        }
    }

    pub(super) fn was_opened(&self, id: u32) -> bool {
        let streams = self.streams.lock();
        id <= streams.last_remote.max(streams.last_local)
    }

    pub(super) fn end(&self) {
        // Readers of all streams see their end.
        for stream in self.streams.lock().open.values_mut() {
            stream.lose();
        }
        self.ended.send_replace(true);
    }
}
