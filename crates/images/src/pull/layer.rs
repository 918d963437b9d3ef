//! One layer: downloaded and unpacked at the same time, by one caller.
//!
//! Chunks go through a short queue to a dedicated thread, which verifies, decompresses and unpacks.
//! The thread is not one of the blocking pool: a registry that sends a byte a minute would occupy
//! it.
//!
//! A layer in the store does not prove that a pull may use it: the author of a manifest may know
//! digests of layers that they have no access to. A present layer is reused if the same registry
//! has served it before, and confirms it for this pull's credentials; another registry must send
//! all of it.

use std::{
    io::{self, Read},
    sync::Arc,
};

use bytes::{Buf as _, Bytes};
use tokio::sync::{mpsc, oneshot};

use crate::{
    Digest, ImageStore, PullError, PullErrorKind,
    manifest::Descriptor,
    registry::{HostSearch, RegistrySession, ResponseBody},
    store::{LayerLease, LayerSource, blocking},
};

/// Chunks queued for the unpacking thread.
const QUEUE: usize = 8;
const STACK: usize = 512 * 1024;

impl ImageStore {
    /// Downloads a layer, unless it is present and may be used, and leases it. `source` is the
    /// registry to query; `None` if the layer came from there with the same image.
    pub(super) async fn layer(
        self: &Arc<Self>,
        session: &RegistrySession,
        (descriptor, diff_id): (Descriptor, Digest),
        source: Option<LayerSource>,
    ) -> Result<LayerLease, PullError> {
        let lock = self.download_lock(&diff_id);
        let _only_one_downloads = lock.lock().await;
        let mut hold = LayerLease::new(self);
        if hold.add(&diff_id) {
            let known = self.sources_of(&diff_id);
            let may = match source.as_ref().map(|source| proof(&known, source)) {
                None | Some(AccessProof::Given) => true,
                Some(AccessProof::Confirmation) => session.confirms(&descriptor).await,
                Some(AccessProof::Content) => false,
            };
            if may {
                self.learned(&diff_id, source).await?;
                return Ok(hold);
            }
        }
        let held = self.downloaded(session, &descriptor, &diff_id).await?;
        self.learned(&diff_id, source).await?;
        Ok(held)
    }

    async fn learned(
        self: &Arc<Self>,
        diff_id: &Digest,
        source: Option<LayerSource>,
    ) -> Result<(), PullError> {
        let Some(source) = source else {
            return Ok(());
        };
        let (store, diff_id) = (Arc::clone(self), diff_id.clone());
        Ok(blocking(move || store.learn_source(&diff_id, source)).await?)
    }

    async fn downloaded(
        self: &Arc<Self>,
        session: &RegistrySession,
        descriptor: &Descriptor,
        diff_id: &Digest,
    ) -> Result<LayerLease, PullError> {
        let mut search = HostSearch::default();
        loop {
            let body = session.blob(descriptor, &mut search).await?;
            match self.download(body, descriptor, diff_id.clone()).await {
                Err(error) if is_the_hosts(&error) => session.try_next_host(&mut search, error)?,
                done => return done,
            }
        }
    }

    fn download_lock(&self, diff_id: &Digest) -> Arc<tokio::sync::Mutex<()>> {
        let mut locks = self.pulls.layers.lock();
        locks.retain(|_, lock| lock.strong_count() > 0);
        if let Some(lock) = locks.get(diff_id).and_then(std::sync::Weak::upgrade) {
            return lock;
        }
        let lock = Arc::default();
        locks.insert(diff_id.clone(), Arc::downgrade(&lock));
        lock
    }

    async fn download(
        self: &Arc<Self>,
        mut body: ResponseBody,
        descriptor: &Descriptor,
        diff_id: Digest,
    ) -> Result<LayerLease, PullError> {
        let (chunks, queue) = mpsc::channel(QUEUE);
        let (answer, answered) = oneshot::channel();
        let store = Arc::clone(self);
        let blob = (descriptor.digest.clone(), descriptor.size);
        let thread = std::thread::Builder::new()
            .name("layer".into())
            .stack_size(STACK);
        let spawned = thread.spawn(move || {
            let content = ChunkReader {
                queue,
                current: Bytes::new(),
                ended: false,
            };
            let taken = store.take_layer(content, Some(&blob), &diff_id);
            // The pull may be canceled by now.
            let _ = answer.send(taken);
        });
        spawned.map_err(|error| {
            let message = "cannot start a thread to unpack a layer";
            PullError::because(PullErrorKind::Internal, message, error)
        })?;
        let sent = send(&mut body, descriptor, &chunks).await;
        // Without the last message the thread knows that the download was interrupted.
        drop(chunks);
        let taken = answered.await.unwrap_or_else(|_| {
            let message = "the thread that unpacks a layer panicked";
            Err(PullError::new(PullErrorKind::Internal, message))
        });
        // The interruption is the reason, not the error that it causes in the thread.
        sent?;
        taken
    }
}

/// The proof of access that a registry must give before a present layer is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AccessProof {
    /// Nothing: the same registry serves it to anonymous clients.
    Given,
    /// Confirm that it serves the layer for these credentials; it has served it before.
    Confirmation,
    /// Send the whole content: a registry that never served it could claim anything.
    Content,
}

fn proof(known: &[LayerSource], asked: &LayerSource) -> AccessProof {
    let mut there = known
        .iter()
        .filter(|source| source.registry == asked.registry && source.blob == asked.blob)
        .peekable();
    if there.peek().is_none() {
        return AccessProof::Content;
    }
    match there.any(|source| source.repository == asked.repository && source.anonymous) {
        true => AccessProof::Given,
        false => AccessProof::Confirmation,
    }
}

/// Reports whether to try the next host.
fn is_the_hosts(error: &PullError) -> bool {
    matches!(
        error.kind(),
        PullErrorKind::Unavailable | PullErrorKind::Refused
    )
}

/// A part of a download.
enum Chunk {
    Bytes(Bytes),
    /// The end of the download.
    End,
}

/// Sends a blob to the thread, until the thread stops reading.
async fn send(
    body: &mut ResponseBody,
    descriptor: &Descriptor,
    chunks: &mpsc::Sender<Chunk>,
) -> Result<(), PullError> {
    let mut arrived = 0;
    while let Some(bytes) = body.chunk().await? {
        arrived += bytes.len() as u64;
        if arrived > descriptor.size {
            let (digest, size) = (&descriptor.digest, descriptor.size);
            let message =
                format!("the layer {digest} has more than the {size} bytes of the manifest");
            return Err(PullError::new(PullErrorKind::Refused, message));
        }
        if chunks.send(Chunk::Bytes(bytes)).await.is_err() {
            // The thread has ended, and returns the error.
            return Ok(());
        }
    }
    if arrived < descriptor.size {
        let (digest, size) = (&descriptor.digest, descriptor.size);
        let message =
            format!("download of the layer {digest} ended after {arrived} of {size} bytes");
        return Err(PullError::new(PullErrorKind::Unavailable, message));
    }
    let _ = chunks.send(Chunk::End).await;
    Ok(())
}

/// The download, as a reader for the thread.
struct ChunkReader {
    queue: mpsc::Receiver<Chunk>,
    current: Bytes,
    ended: bool,
}

impl Read for ChunkReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.current.is_empty() && !self.ended {
            match self.queue.blocking_recv() {
                Some(Chunk::Bytes(bytes)) => self.current = bytes,
                Some(Chunk::End) => self.ended = true,
                None => return Err(io::ErrorKind::UnexpectedEof.into()),
            }
        }
        let length = self.current.len().min(buffer.len());
        self.current.copy_to_slice(&mut buffer[..length]);
        Ok(length)
    }
}
