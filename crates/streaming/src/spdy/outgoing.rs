//! Frames to be written to a connection. Data waits for the connection; control frames never do, so
//! that reading continues while a peer accepts no data: it may be about to send what resolves that,
//! such as Ctrl-C.

use std::{collections::VecDeque, io};

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::{Notify, mpsc};

use super::{
    frame::{self, HEAD, ResetStatus},
    header_block::{Deflater, Headers},
};
use crate::Sink;

/// Maximum number of queued control frames. Only a peer that sends requests and does not read
/// reaches it.
const MOST_WAITING: usize = 1024;

/// Data frames that wait for the connection, of all streams together.
pub(super) const QUEUED: usize = 4;

/// No frame is added to a batch of this length: rustls takes 64 KiB at a time.
const LONGEST_BATCH: usize = 32 << 10;

/// A control frame to write.
#[derive(Debug)]
pub(super) enum ControlFrame {
    Syn { stream: u32, headers: Headers },
    Reply(u32),
    Reset(u32, ResetStatus),
    Ping(u32),
}

/// Data to write.
#[derive(Debug)]
pub(super) enum DataFrame {
    Data {
        stream: u32,
        fin: bool,
        bytes: Bytes,
    },
    /// The last frame of the connection.
    GoAway(u32),
}

/// Queued control frames.
#[derive(Debug, Default)]
pub(super) struct ControlQueue {
    frames: Mutex<VecDeque<ControlFrame>>,
    added: Notify,
}

impl ControlQueue {
    /// Adds a frame.
    ///
    /// # Errors
    /// Too many are queued.
    pub(super) fn push(&self, frame: ControlFrame) -> io::Result<()> {
        let mut frames = self.frames.lock();
        if frames.len() >= MOST_WAITING {
            return Err(io::Error::other("the peer does not read what it asked for"));
        }
        frames.push_back(frame);
        self.added.notify_one();
        Ok(())
    }

    fn pop(&self) -> Option<ControlFrame> {
        self.frames.lock().pop_front()
    }
}

/// Writes frames until [`DataFrame::GoAway`] is written, or all senders are gone.
pub(super) async fn write_frames(
    mut sink: Box<dyn Sink>,
    control: &ControlQueue,
    mut data: mpsc::Receiver<DataFrame>,
    written: impl Fn(),
) -> io::Result<()> {
    let mut deflater = Deflater::default();
    loop {
        while let Some(frame) = control.pop() {
            sink.write(encode(frame, &mut deflater)).await?;
            written();
        }
        let frame = tokio::select! {
            biased;
            () = control.added.notified() => continue,
            frame = data.recv() => frame,
        };
        match frame {
            Some(frame) => {
                let batch = Batch::of(frame, &mut data);
                // A stream's reply, or its SYN_STREAM, precedes its data.
                while let Some(frame) = control.pop() {
                    sink.write(encode(frame, &mut deflater)).await?;
                }
                sink.write_pieces(&batch.pieces).await?;
                written();
                if batch.is_last {
                    return sink.close().await;
                }
            }
            None => return sink.close().await,
        }
    }
}

/// Frames that are written at once: small ones share a system call, a TLS record and a packet.
#[derive(Default)]
struct Batch {
    /// Heads and bodies.
    pieces: Vec<Bytes>,
    length: usize,
    /// GOAWAY is the last frame.
    is_last: bool,
}

impl Batch {
    /// A frame, and those that are queued behind it.
    fn of(first: DataFrame, queued: &mut mpsc::Receiver<DataFrame>) -> Self {
        let mut batch = Self::default();
        batch.add(first);
        while batch.length < LONGEST_BATCH
            && !batch.is_last
            && let Ok(frame) = queued.try_recv()
        {
            batch.add(frame);
        }
        batch
    }

    fn add(&mut self, frame: DataFrame) {
        match frame {
            DataFrame::Data { stream, fin, bytes } => {
                self.length += HEAD + bytes.len();
                self.pieces.push(frame::data_head(stream, fin, bytes.len()));
                self.pieces.push(bytes);
            }
            DataFrame::GoAway(last) => {
                self.pieces.push(frame::go_away(last));
                self.is_last = true;
            }
        }
    }
}

fn encode(frame: ControlFrame, deflater: &mut Deflater) -> Bytes {
    match frame {
        ControlFrame::Syn { stream, headers } => {
            frame::syn(stream, false, &deflater.compress(&headers.encode()))
        }
        ControlFrame::Reply(stream) => {
            frame::reply(stream, &deflater.compress(&Headers::default().encode()))
        }
        ControlFrame::Reset(stream, status) => frame::reset(stream, status),
        ControlFrame::Ping(number) => frame::ping(number),
    }
}
