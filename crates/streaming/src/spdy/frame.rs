//! Frames: a header of eight bytes, and the payload.

use bytes::Bytes;

/// Bytes of a head.
pub const HEAD: usize = 8;

/// Longest control frame: a header block and its head.
pub const LONGEST_CONTROL: usize = super::header_block::LONGEST_BLOCK + 64;

/// Maximum payload of a data frame that is written. With its head it fills four TLS records exactly,
/// and the 64 KiB that rustls accepts at a time: more would need another system call and packet.
pub(crate) const LONGEST_DATA: usize = (64 << 10) - HEAD;

const VERSION: u16 = 3;
const CONTROL: u16 = 0x8000;
const FIN: u8 = 1;
const STREAM_MASK: u32 = 0x7fff_ffff;

const SYN_STREAM: u16 = 1;
const SYN_REPLY: u16 = 2;
const RST_STREAM: u16 = 3;
const PING: u16 = 6;
const GOAWAY: u16 = 7;
const HEADERS: u16 = 8;

/// Why a stream is reset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum ResetStatus {
    /// The stream violated the protocol.
    ProtocolError = 1,
    /// There is no such stream.
    InvalidStream = 2,
    /// The stream is not wanted.
    RefusedStream = 3,
    /// Its creator does not need it any more.
    Cancel = 5,
}

/// Why a frame is invalid. The connection can't be used afterwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// Another version of SPDY, or another protocol.
    #[error("the peer does not speak SPDY/3")]
    Version,
    /// A control frame that is longer than any valid one.
    #[error("a control frame of {0} bytes is too long")]
    TooLong(usize),
    /// A control frame whose length does not match its type.
    #[error("a control frame is malformed")]
    Malformed,
}

/// The head of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Head {
    /// Bytes of a stream follow.
    Data {
        /// The stream.
        stream: u32,
        /// Whether they are its last ones.
        fin: bool,
        /// Number of data bytes.
        length: usize,
    },
    /// A control frame follows.
    Control {
        /// Its type.
        kind: u16,
        /// Its flags.
        flags: u8,
        /// Its length.
        length: usize,
    },
}

/// A control frame. Blocks are still compressed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Control {
    /// A new stream.
    Syn {
        /// Its ID.
        stream: u32,
        /// Whether the opener sends no data on it.
        fin: bool,
        /// Its headers.
        block: Bytes,
    },
    /// The answer to [`Self::Syn`].
    Reply {
        /// The stream.
        stream: u32,
        /// Whether the sender sends no data on it.
        fin: bool,
        /// Headers.
        block: Bytes,
    },
    /// More headers of a stream.
    Headers {
        /// The stream.
        stream: u32,
        /// Whether the sender sends no more data on it.
        fin: bool,
        /// Headers.
        block: Bytes,
    },
    /// A stream is reset.
    Reset {
        /// The stream.
        stream: u32,
    },
    /// To be sent back.
    Ping(u32),
    /// No more streams.
    GoAway,
    /// SETTINGS, WINDOW_UPDATE, and unknown types.
    Ignored,
}

/// Reads a head.
///
/// # Errors
/// See [`FrameError`].
pub fn head(bytes: [u8; HEAD]) -> Result<Head, FrameError> {
    let [a, b, c, d, flags, x, y, z] = bytes;
    let length = u32::from_be_bytes([0, x, y, z]) as usize;
    let first = u16::from_be_bytes([a, b]);
    if first & CONTROL == 0 {
        return Ok(Head::Data {
            stream: u32::from_be_bytes([a, b, c, d]),
            fin: flags & FIN != 0,
            length,
        });
    }
    if first & !CONTROL != VERSION {
        return Err(FrameError::Version);
    }
    if length > LONGEST_CONTROL {
        return Err(FrameError::TooLong(length));
    }
    Ok(Head::Control {
        kind: u16::from_be_bytes([c, d]),
        flags,
        length,
    })
}

/// Reads what follows the head of a control frame.
///
/// # Errors
/// [`FrameError::Malformed`].
pub fn control(kind: u16, flags: u8, body: &Bytes) -> Result<Control, FrameError> {
    let fin = flags & FIN != 0;
    let number = |at: usize| {
        let bytes = body.get(at..).and_then(<[u8]>::first_chunk);
        bytes
            .map(|bytes| u32::from_be_bytes(*bytes))
            .ok_or(FrameError::Malformed)
    };
    let stream = || number(0).map(|number| number & STREAM_MASK);
    let exactly = |length: usize| {
        let fits = body.len() == length;
        fits.then_some(()).ok_or(FrameError::Malformed)
    };
    Ok(match kind {
        SYN_STREAM => {
            let stream = stream()?;
            let block = (body.len() >= 10).then(|| body.slice(10..));
            let block = block.ok_or(FrameError::Malformed)?;
            Control::Syn { stream, fin, block }
        }
        SYN_REPLY | HEADERS => {
            let stream = stream()?;
            let block = body.slice(4..);
            match kind {
                SYN_REPLY => Control::Reply { stream, fin, block },
                _ => Control::Headers { stream, fin, block },
            }
        }
        RST_STREAM => {
            exactly(8)?;
            Control::Reset { stream: stream()? }
        }
        PING => {
            exactly(4)?;
            Control::Ping(number(0)?)
        }
        GOAWAY => {
            exactly(8)?;
            Control::GoAway
        }
        _ => Control::Ignored,
    })
}

/// A data frame.
#[must_use]
pub fn data(stream: u32, fin: bool, bytes: &[u8]) -> Bytes {
    [
        data_head(stream, fin, bytes.len()),
        Bytes::copy_from_slice(bytes),
    ]
    .concat()
    .into()
}

/// The head of a data frame of that length.
pub(crate) fn data_head(stream: u32, fin: bool, length: usize) -> Bytes {
    let mut head = Vec::with_capacity(HEAD);
    head.extend_from_slice(&stream.to_be_bytes());
    push_length(&mut head, fin, length);
    head.into()
}

/// SYN_STREAM with a compressed block.
#[must_use]
pub fn syn(stream: u32, fin: bool, block: &[u8]) -> Bytes {
    let mut body = Vec::with_capacity(10 + block.len());
    body.extend_from_slice(&stream.to_be_bytes());
    // No associated stream, highest priority, no slot.
    body.extend_from_slice(&[0; 6]);
    body.extend_from_slice(block);
    control_frame(SYN_STREAM, fin, &body)
}

/// SYN_REPLY with a compressed block.
#[must_use]
pub fn reply(stream: u32, block: &[u8]) -> Bytes {
    control_frame(SYN_REPLY, false, &[&stream.to_be_bytes(), block].concat())
}

/// RST_STREAM.
#[must_use]
pub fn reset(stream: u32, status: ResetStatus) -> Bytes {
    let body = [stream.to_be_bytes(), (status as u32).to_be_bytes()];
    control_frame(RST_STREAM, false, body.as_flattened())
}

/// PING.
#[must_use]
pub fn ping(number: u32) -> Bytes {
    control_frame(PING, false, &number.to_be_bytes())
}

/// GOAWAY after the stream `last` of the peer, with status OK.
#[must_use]
pub fn go_away(last: u32) -> Bytes {
    let body = [last.to_be_bytes(), [0; 4]];
    control_frame(GOAWAY, false, body.as_flattened())
}

fn control_frame(kind: u16, fin: bool, body: &[u8]) -> Bytes {
    let mut frame = Vec::with_capacity(HEAD + body.len());
    frame.extend_from_slice(&(CONTROL | VERSION).to_be_bytes());
    frame.extend_from_slice(&kind.to_be_bytes());
    push_length(&mut frame, fin, body.len());
    frame.extend_from_slice(body);
    frame.into()
}

fn push_length(frame: &mut Vec<u8>, fin: bool, length: usize) {
    let length = u32::try_from(length).unwrap_or_default().to_be_bytes();
    frame.push(if fin { FIN } else { 0 });
    frame.extend_from_slice(&length[1..]);
}
