//! One layer: downloaded and unpacked at the same time, by one caller.
//!
//! Chunks go through a short queue to a thread of the layer's own, which checks, inflates and
//! unpacks. It is none of the shared pool: a registry that sends a byte a minute would keep it.
//!
//! A layer that is here is no proof that whoever names it may have it: a manifest is written by its
//! author, who may know digests of layers that are not theirs. A present layer is used again where
//! the same registry is known to have given it, and gives it now to who asks; a registry that never
//! gave it has to show all of it.

use std::{
    io::{self, Read},
    sync::{Arc, PoisonError},
};

use bytes::{Buf as _, Bytes};
use tokio::sync::{mpsc, oneshot};

use crate::{
    Digest, ImageStore, PullError, PullErrorKind,
    manifest::Descriptor,
    registry::{Body, Search, Session},
    store::{LayerHold, LayerSource, blocking},
};

/// Chunks that wait for the unpacking thread.
const QUEUE: usize = 8;
const STACK: usize = 512 * 1024;

impl ImageStore {
    /// Gets a layer, unless it is here and may be used, and holds it. `source` is where it is asked
    /// for; `None`: it was had from there as a part of the same image.
    pub(super) async fn layer(
        self: &Arc<Self>,
        session: &Session,
        (descriptor, diff_id): (Descriptor, Digest),
        source: Option<LayerSource>,
    ) -> Result<LayerHold, PullError> {
        let turn = self.turn(&diff_id);
        let _only_one_downloads = turn.lock().await;
        let mut hold = LayerHold::new(self);
        if hold.add(&diff_id) {
            let known = self.sources_of(&diff_id);
            let may = match source.as_ref().map(|source| proof(&known, source)) {
                None | Some(Proof::Given) => true,
                Some(Proof::Confirmation) => session.confirms(&descriptor).await,
                Some(Proof::Content) => false,
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
        session: &Session,
        descriptor: &Descriptor,
        diff_id: &Digest,
    ) -> Result<LayerHold, PullError> {
        let mut search = Search::default();
        loop {
            let body = session.blob(descriptor, &mut search).await?;
            match self.download(body, descriptor, diff_id.clone()).await {
                Err(error) if is_the_hosts(&error) => session.give_way(&mut search, error)?,
                done => return done,
            }
        }
    }

    fn turn(&self, diff_id: &Digest) -> Arc<tokio::sync::Mutex<()>> {
        let turns = self.pulls.layers.lock();
        let mut turns = turns.unwrap_or_else(PoisonError::into_inner);
        turns.retain(|_, turn| turn.strong_count() > 0);
        if let Some(turn) = turns.get(diff_id).and_then(std::sync::Weak::upgrade) {
            return turn;
        }
        let turn = Arc::default();
        turns.insert(diff_id.clone(), Arc::downgrade(&turn));
        turn
    }

    async fn download(
        self: &Arc<Self>,
        mut body: Body,
        descriptor: &Descriptor,
        diff_id: Digest,
    ) -> Result<LayerHold, PullError> {
        let (chunks, queue) = mpsc::channel(QUEUE);
        let (answer, answered) = oneshot::channel();
        let store = Arc::clone(self);
        let blob = (descriptor.digest.clone(), descriptor.size);
        let thread = std::thread::Builder::new()
            .name("layer".into())
            .stack_size(STACK);
        let spawned = thread.spawn(move || {
            let content = Chunks {
                queue,
                current: Bytes::new(),
                ended: false,
            };
            let taken = store.take_layer(content, Some(&blob), &diff_id);
            // Nobody may be there any more.
            let _ = answer.send(taken);
        });
        spawned.map_err(|error| {
            let message = "no thread can be made to unpack a layer";
            PullError::because(PullErrorKind::Internal, message, error)
        })?;
        let sent = send(&mut body, descriptor, &chunks).await;
        // Without its last word, the thread knows that the download was cut off.
        drop(chunks);
        let taken = answered.await.unwrap_or_else(|_| {
            let message = "the thread that unpacks a layer ended";
            Err(PullError::new(PullErrorKind::Internal, message))
        });
        // What cut the download off is the reason, not what the thread makes of it.
        sent?;
        taken
    }
}

/// What has to be shown before a present layer is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Proof {
    /// Nothing: everybody may have it from that very place.
    Given,
    /// The registry, which has given it before, says that it gives it to who asks now.
    Confirmation,
    /// The whole content: the word of a registry that never had it is worth nothing.
    Content,
}

fn proof(known: &[LayerSource], asked: &LayerSource) -> Proof {
    let mut there = known
        .iter()
        .filter(|source| source.registry == asked.registry && source.blob == asked.blob)
        .peekable();
    if there.peek().is_none() {
        return Proof::Content;
    }
    match there.any(|source| source.repository == asked.repository && source.anonymous) {
        true => Proof::Given,
        false => Proof::Confirmation,
    }
}

/// Whether another host may do better.
fn is_the_hosts(error: &PullError) -> bool {
    matches!(
        error.kind(),
        PullErrorKind::Unavailable | PullErrorKind::Refused
    )
}

/// A part of a download.
enum Chunk {
    Bytes(Bytes),
    /// That was all.
    End,
}

/// Sends a whole blob to the thread, or as much as it wants to have.
async fn send(
    body: &mut Body,
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
            // The thread has ended, and says why.
            return Ok(());
        }
    }
    if arrived < descriptor.size {
        let (digest, size) = (&descriptor.digest, descriptor.size);
        let message = format!("the layer {digest} was cut off after {arrived} of {size} bytes");
        return Err(PullError::new(PullErrorKind::Unavailable, message));
    }
    let _ = chunks.send(Chunk::End).await;
    Ok(())
}

/// What was downloaded, for a thread.
struct Chunks {
    queue: mpsc::Receiver<Chunk>,
    current: Bytes,
    ended: bool,
}

impl Read for Chunks {
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
