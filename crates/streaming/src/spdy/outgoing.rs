//! Frames to be written to a connection. Data waits for the connection; control frames never do, so
//! that reading continues while a peer accepts no data: it may be about to send what resolves that,
//! such as Ctrl-C.

use std::{collections::VecDeque, io};

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::{Notify, mpsc};

use super::{
    frame::{self, ResetStatus},
    header_block::{Deflater, Headers},
};
use crate::Sink;

/// Maximum number of queued control frames. Only a peer that sends requests and does not read
/// reaches it.
const MOST_WAITING: usize = 1024;

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
            Some(DataFrame::Data { stream, fin, bytes }) => {
                // A stream's reply, or its SYN_STREAM, precedes its data.
                while let Some(frame) = control.pop() {
                    sink.write(encode(frame, &mut deflater)).await?;
                }
                let head = frame::data_head(stream, fin, bytes.len());
                sink.write_both(head, bytes).await?;
                written();
            }
            Some(DataFrame::GoAway(last)) => {
                sink.write(frame::go_away(last)).await?;
                return sink.close().await;
            }
            None => return sink.close().await,
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
