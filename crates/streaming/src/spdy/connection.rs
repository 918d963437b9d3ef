//! A connection: one task reads and writes frames for all streams.

use std::{io, sync::Arc, time::Duration};

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::{
    sync::{mpsc, watch},
    time::{Instant, timeout},
};

use super::{
    frame::{Control, Head, ResetStatus, control},
    handle::{Handle, Inner, Role},
    header_block::{Headers, Inflater},
    outgoing::{ControlFrame, ControlQueue, DataFrame, QUEUED, write_frames},
    reader::{FrameReader, cut_off, invalid},
    stream::Stream,
};
use crate::{
    Duplex,
    idle::{idle, with_grace},
    inbound::inbound,
};

/// Time for a peer to close a connection after all data was sent. Closing immediately
/// while the peer still sends would make the kernel reset the connection, and discard data that the
/// peer has not read yet.
const LINGER: Duration = Duration::from_secs(1);

/// Limits of a connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Maximum number of concurrent streams.
    pub(crate) streams: usize,
    /// Idle timeout, without a frame: what serves the connection is told ([`Handle::idle`]), and the
    /// connection ends soon after. Zero means no limit.
    pub(crate) idle: Duration,
}

/// A connection, open as long as this or one of its streams exists.
pub(crate) struct Connection {
    pub(crate) handle: Arc<Handle>,
    incoming: mpsc::Receiver<Stream>,
}

impl Connection {
    /// Starts a SPDY connection.
    pub(crate) fn start(transport: Duplex, role: Role, limits: Limits) -> Self {
        let inner = Arc::new(Inner {
            control: ControlQueue::default(),
            streams: Mutex::default(),
            role,
            most_streams: limits.streams,
            idle: limits.idle,
            used: Mutex::new(Instant::now()),
            ended: watch::channel(false).0,
        });
        let (data, outgoing) = mpsc::channel(QUEUED);
        let (arrived, incoming) = mpsc::channel(limits.streams);
        let handle = Arc::new(Handle {
            inner: Arc::clone(&inner),
            data,
            task: Mutex::new(None),
        });
        let weak = Arc::downgrade(&handle);
        let task = tokio::spawn(async move {
            let written = Arc::clone(&inner);
            let read = async {
                let mut reader = FrameReader::new(transport.source);
                let streams = IncomingStreams { weak, arrived };
                read_frames(&inner, &mut reader, &streams).await
            };
            let write = write_frames(transport.sink, &inner.control, outgoing, || written.touch());
            drive(&inner, read, write).await;
            inner.end();
        });
        *handle.task.lock() = Some(task.abort_handle());
        Self { handle, incoming }
    }

    /// The next stream that the peer opens; `None` when the connection has ended.
    pub(crate) async fn next(&mut self) -> Option<Stream> {
        self.incoming.recv().await
    }

    /// Sends all written data and GOAWAY, and waits until the peer has closed the connection, at
    /// most for a second.
    pub(crate) async fn close(self) {
        let last = {
            let mut streams = self.handle.inner.streams.lock();
            streams.closing = true;
            streams.last_remote
        };
        if self.handle.send(DataFrame::GoAway(last)).await.is_ok() {
            self.handle.ended().await;
        }
    }
}

impl Handle {
    /// Opens a stream.
    pub(crate) fn open(self: &Arc<Self>, headers: Headers) -> io::Result<Stream> {
        let (entry, source, remote) = inbound();
        let id = {
            let mut streams = self.inner.streams.lock();
            if *self.inner.ended.borrow() || streams.open.len() >= self.inner.most_streams {
                return Err(io::Error::new(
                    io::ErrorKind::NotConnected,
                    "the connection was lost, or has too many streams",
                ));
            }
            let first = match self.inner.role {
                Role::Client => 1,
                Role::Server => 2,
            };
            let id = match streams.last_local {
                0 => first,
                last => last + 2,
            };
            streams.last_local = id;
            streams.open.insert(id, entry);
            // Under the lock: streams must be opened in the order of their IDs.
            let headers = headers.clone();
            let frame = ControlFrame::Syn {
                stream: id,
                headers,
            };
            self.inner.control.push(frame)?;
            id
        };
        Ok(Stream::new(id, headers, source, remote, Arc::clone(self)))
    }
}

/// The queue of streams that the peer opens.
struct IncomingStreams {
    weak: std::sync::Weak<Handle>,
    arrived: mpsc::Sender<Stream>,
}

/// Reads and writes until either ends.
async fn drive(
    inner: &Inner,
    read: impl Future<Output = io::Result<()>>,
    write: impl Future<Output = io::Result<()>>,
) {
    let (mut read, mut write) = (std::pin::pin!(read), std::pin::pin!(write));
    tokio::select! {
        ended = read.as_mut() => {
            if let Err(error) = ended {
                tracing::debug!(%error, "A streaming connection broke");
            }
        }
        ended = write.as_mut() => match ended {
            // Further input is discarded.
            Ok(()) => drop(timeout(LINGER, read).await),
            Err(error) => tracing::debug!(%error, "A streaming connection broke"),
        },
        () = idle(&inner.used, with_grace(inner.idle)) => {
            tracing::debug!("Closed an idle streaming connection");
        }
    }
}

async fn read_frames(
    inner: &Inner,
    reader: &mut FrameReader,
    incoming: &IncomingStreams,
) -> io::Result<()> {
    let mut inflater = Inflater::default();
    while let Some(head) = reader.head().await? {
        inner.touch();
        match head {
            Head::Data {
                stream,
                fin,
                length,
            } => {
                read_data(inner, reader, stream, length).await?;
                if fin {
                    inner.finish(stream);
                }
            }
            Head::Control {
                kind,
                flags,
                length,
            } => {
                let body = reader.exactly(length).await?;
                let frame = control(kind, flags, &body).map_err(invalid)?;
                handle(inner, frame, &mut inflater, incoming)?;
            }
        }
    }
    Ok(())
}

async fn read_data(
    inner: &Inner,
    reader: &mut FrameReader,
    stream: u32,
    mut length: usize,
) -> io::Result<()> {
    let mut inbound = inner.inbound(stream);
    if inbound.is_none() && !inner.was_opened(stream) {
        let frame = ControlFrame::Reset(stream, ResetStatus::InvalidStream);
        inner.control.push(frame)?;
    }
    while length > 0 {
        let chunk = reader.some(length).await?.ok_or_else(cut_off)?;
        length -= chunk.len();
        inner.touch();
        if let Some(sender) = &inbound
            && sender.send(chunk).await.is_err()
        {
            // The reader is gone.
            inbound = None;
        }
    }
    Ok(())
}

fn handle(
    inner: &Inner,
    frame: Control,
    inflater: &mut Inflater,
    incoming: &IncomingStreams,
) -> io::Result<()> {
    let mut headers = |block: &Bytes| -> io::Result<Headers> {
        let block = inflater.decompress(block).map_err(invalid)?;
        Headers::decode(&block).map_err(invalid)
    };
    match frame {
        Control::Syn { stream, fin, block } => {
            // Also for a stream that is refused: the next block refers to it.
            let headers = headers(&block)?;
            accept(inner, stream, fin, headers, incoming)?;
        }
        Control::Reply { stream, fin, block } | Control::Headers { stream, fin, block } => {
            headers(&block)?;
            if fin {
                inner.finish(stream);
            }
        }
        Control::Reset { stream } => inner.reset(stream),
        Control::Ping(number) => {
            // A ping ID with our own parity is the reply to our ping.
            let is_ours = (number % 2 == 1) == (inner.role == Role::Client);
            if !is_ours {
                inner.control.push(ControlFrame::Ping(number))?;
            }
        }
        Control::GoAway | Control::Ignored => {}
    }
    Ok(())
}

fn accept(
    inner: &Inner,
    id: u32,
    fin: bool,
    headers: Headers,
    incoming: &IncomingStreams,
) -> io::Result<()> {
    let Some(handle) = incoming.weak.upgrade() else {
        return Ok(());
    };
    let (mut entry, source, remote) = inbound();
    {
        let mut streams = inner.streams.lock();
        let of_peer = (id % 2 == 1) == (inner.role == Role::Server);
        if !of_peer || id <= streams.last_remote {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "the peer opened a stream with a wrong number",
            ));
        }
        streams.last_remote = id;
        if streams.closing || streams.open.len() >= inner.most_streams {
            let frame = ControlFrame::Reset(id, ResetStatus::RefusedStream);
            return inner.control.push(frame);
        }
        if fin {
            entry.finish();
        }
        streams.open.insert(id, entry);
    }
    let stream = Stream::new(id, headers, source, remote, handle);
    // Without a free slot, or a receiver, it is dropped, and so reset.
    drop(incoming.arrived.try_send(stream));
    Ok(())
}
