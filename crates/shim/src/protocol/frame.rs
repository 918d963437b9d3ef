//! Frames: four fixed bytes, how many file descriptors belong to it, and a body of that length.

/// How a frame begins. Whatever else is on the other end of a socket hardly begins so.
const MAGIC: [u8; 3] = *b"RbS";

/// Bytes before the body: magic, number of descriptors, length of the body (little endian).
const HEAD: usize = 8;

/// Longest body. The arguments of one process can't be longer than two megabytes on Linux; JSON
/// writes a byte as up to six.
pub const MAX_FRAME: usize = 13 << 20;

/// Most file descriptors of one frame.
pub const MAX_FDS: usize = 3;

/// One message, as bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// How many file descriptors belong to it: the next ones that arrived with the bytes.
    pub fds: usize,
    /// JSON.
    pub body: Vec<u8>,
}

/// Why bytes are no frames. The connection can't be used any more.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// No frame begins so.
    #[error("the other side of the socket does not speak the shim's protocol")]
    Magic,
    /// The body would be too long.
    #[error("a message of {0} bytes is longer than the {MAX_FRAME} that are allowed")]
    TooLong(usize),
    /// Too many descriptors.
    #[error("a message with {0} file descriptors has more than the {MAX_FDS} that are allowed")]
    TooManyFds(usize),
    /// The body is no message.
    #[error("a message can't be read: {0}")]
    Json(String),
}

/// Puts bytes together to frames. It keeps no more than the bytes it was given.
#[derive(Debug, Default)]
pub struct Decoder {
    held: Vec<u8>,
}

impl Decoder {
    /// An empty one.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes bytes as they arrive, in any portions.
    pub fn push(&mut self, bytes: &[u8]) {
        self.held.extend_from_slice(bytes);
    }

    /// The next whole frame; `None` wants more bytes. To be called until then.
    ///
    /// # Errors
    /// The bytes are no frame; what follows can't be one either.
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
            // An idle connection holds no memory.
            self.held = Vec::new();
        }
        Ok(Some(Frame { fds, body }))
    }

    /// Whether a frame was begun and has not ended.
    #[must_use]
    pub fn is_amid_frame(&self) -> bool {
        !self.held.is_empty()
    }
}

/// The bytes of a frame with a message and so many file descriptors, which are to be sent with the
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
