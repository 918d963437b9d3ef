//! gRPC's message framing: a byte for compression, four bytes of length, the message.

use bytes::{Buf, BufMut, Bytes, BytesMut};

/// Length of the prefix of a message.
const PREFIX: usize = 5;
/// Maximum size of a message, in bytes. Receivers reject messages above 16 MiB; a larger length
/// means a broken peer.
const MAX_MESSAGE_SIZE: usize = 64 * 1024 * 1024;

/// A message with its prefix.
pub(crate) fn framed(message: &[u8]) -> Bytes {
    let mut frame = BytesMut::with_capacity(PREFIX + message.len());
    frame.put_u8(0);
    frame.put_u32(u32::try_from(message.len()).unwrap_or(u32::MAX));
    frame.put_slice(message);
    frame.freeze()
}

/// The message in `frame`; `None` if it is compressed or incomplete.
pub(crate) fn message(frame: &Bytes) -> Option<Bytes> {
    let whole = length(frame).is_some_and(|length| frame.len() == PREFIX + length);
    (whole && frame[0] == 0).then(|| frame.slice(PREFIX..))
}

fn length(frame: &[u8]) -> Option<usize> {
    let length = frame.get(1..PREFIX)?.try_into().ok()?;
    usize::try_from(u32::from_be_bytes(length)).ok()
}

/// Splits a stream of bytes into messages with their prefixes.
#[derive(Default)]
pub(crate) struct Splitter(BytesMut);

/// The peer announced a message that is too large.
#[derive(Debug, thiserror::Error)]
#[error("a message of {0} bytes was announced, more than {MAX_MESSAGE_SIZE}")]
pub(crate) struct TooLarge(usize);

impl Splitter {
    pub(crate) fn push(&mut self, mut bytes: impl Buf) {
        self.0.put(&mut bytes);
    }

    /// The next complete message with its prefix.
    pub(crate) fn next(&mut self) -> Result<Option<Bytes>, TooLarge> {
        let Some(length) = length(&self.0) else {
            return Ok(None);
        };
        if length > MAX_MESSAGE_SIZE {
            return Err(TooLarge(length));
        }
        if self.0.len() < PREFIX + length {
            return Ok(None);
        }
        Ok(Some(self.0.split_to(PREFIX + length).freeze()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_split_however_the_bytes_arrive() {
        let all = [framed(b"one"), framed(b""), framed(b"three")].concat();
        for step in 1..all.len() {
            let mut splitter = Splitter::default();
            let mut found = Vec::new();
            for piece in all.chunks(step) {
                splitter.push(piece);
                while let Some(frame) = splitter.next().unwrap() {
                    found.push(message(&frame).unwrap());
                }
            }
            assert_eq!(found, ["one", "", "three"], "{step}");
        }
    }

    #[test]
    fn a_too_large_length_is_refused_before_it_is_buffered() {
        let mut splitter = Splitter::default();
        splitter.push(&[0, 255, 255, 255, 255][..]);
        assert!(splitter.next().is_err());
    }

    #[test]
    fn compressed_and_truncated_messages_are_not_decoded() {
        assert_eq!(message(&Bytes::from_static(&[1, 0, 0, 0, 1, 7])), None);
        assert_eq!(message(&Bytes::from_static(&[0, 0, 0, 0, 2, 7])), None);
        assert_eq!(message(&Bytes::from_static(&[0, 0])), None);
    }
}
