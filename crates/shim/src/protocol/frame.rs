//! Frames: a magic number, the number of file descriptors, the length of the body, and the body.

/// The magic number of a frame, to detect other programs on the socket.
const MAGIC: [u8; 3] = *b"RbS";

/// Bytes before the body: magic, number of descriptors, length of the body (little endian).
const HEAD: usize = 8;

/// Largest body. Arguments of a process have at most two megabytes on Linux, and JSON escapes a
/// byte with up to six.
pub const MAX_FRAME: usize = 13 << 20;

/// Most file descriptors of one frame.
pub const MAX_FDS: usize = 3;

/// One message, as bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// Number of its file descriptors: the next ones that arrived.
    pub fds: usize,
    /// JSON.
    pub body: Vec<u8>,
}

/// Why received bytes can't be decoded. The connection can't be used any more.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The magic number is wrong.
    #[error("the peer does not use the shim's protocol")]
    Magic,
    /// The body is too large.
    #[error("a message of {0} bytes exceeds the limit of {MAX_FRAME}")]
    TooLong(usize),
    /// Too many descriptors.
    #[error("a message with {0} file descriptors exceeds the limit of {MAX_FDS}")]
    TooManyFds(usize),
    /// The body is not a valid message.
    #[error("cannot decode a message: {0}")]
    Json(String),
}

/// Assembles frames from bytes. Buffers no more than the bytes it was given.
#[derive(Debug, Default)]
pub struct Decoder {
    held: Vec<u8>,
}

impl Decoder {
    /// An empty decoder.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds bytes, in any portions.
    pub fn push(&mut self, bytes: &[u8]) {
        self.held.extend_from_slice(bytes);
    }

    /// The next whole frame; `None` if more bytes are needed. Call it until it returns `None`.
    ///
    /// # Errors
    /// The bytes are not a frame; the stream can't be resynchronized.
    pub fn next_frame(&mut self) -> Result<Option<Frame>, DecodeError> {
        let known = self.held.len().min(MAGIC.len());
        if self.held[..known] != MAGIC[..known] {
            return Err(DecodeError::Magic);
        }
        let Some(head) = self.held.first_chunk::<HEAD>() else {
            return Ok(None);
        };
        let fds = usize::from(head[3]);
        if fds > MAX_FDS {
            return Err(DecodeError::TooManyFds(fds));
        }
        let length = u32::from_le_bytes([head[4], head[5], head[6], head[7]]) as usize;
        if length > MAX_FRAME {
            return Err(DecodeError::TooLong(length));
        }
        if self.held.len() < HEAD + length {
            return Ok(None);
        }
        let body = self.held[HEAD..HEAD + length].to_vec();
        self.held.drain(..HEAD + length);
        if self.held.is_empty() {
            // Frees the buffer: an idle connection holds no memory.
            self.held = Vec::new();
        }
        Ok(Some(Frame { fds, body }))
    }
}

/// Encodes a frame with a message and this number of file descriptors, which must be sent with the
/// first byte.
///
/// # Errors
/// The message is too long, or has too many descriptors.
pub fn encode<T: serde::Serialize>(message: &T, fds: usize) -> Result<Vec<u8>, DecodeError> {
    let count = u8::try_from(fds)
        .ok()
        .filter(|_| fds <= MAX_FDS)
        .ok_or(DecodeError::TooManyFds(fds))?;
    let mut bytes = vec![0; HEAD];
    serde_json::to_writer(&mut bytes, message)
        .map_err(|error| DecodeError::Json(error.to_string()))?;
    let body = bytes.len() - HEAD;
    let length = u32::try_from(body)
        .ok()
        .filter(|_| body <= MAX_FRAME)
        .ok_or(DecodeError::TooLong(body))?;
    bytes[..3].copy_from_slice(&MAGIC);
    bytes[3] = count;
    bytes[4..HEAD].copy_from_slice(&length.to_le_bytes());
    Ok(bytes)
}
