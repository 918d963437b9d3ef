//! Name/value blocks of SYN_STREAM, SYN_REPLY and HEADERS, and their compression: one zlib stream for
//! each direction of a connection, cut into blocks by sync flushes.

use flate2::{Decompress, FlushDecompress, Status};

use super::dictionary::{CHECKSUM, dictionary};

/// Maximum size of a block before compression. Kubernetes needs a few hundred bytes.
pub const LONGEST_BLOCK: usize = 64 << 10;

/// Maximum number of headers in a block.
const MOST_HEADERS: usize = 128;

/// Window of the compressor.
const WINDOW: usize = 32 << 10;

/// Size of the zlib stream header, and of the checksum of its dictionary.
const ZLIB_HEADER: usize = 2;

/// Why a block is invalid. The connection can't be used afterwards: later blocks refer to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum HeaderError {
    /// It is not a zlib stream with SPDY's dictionary.
    #[error("the compression of a header block is invalid")]
    Compression,
    /// It is longer than [`LONGEST_BLOCK`], or has too many headers.
    #[error("a header block is too long")]
    TooLong,
    /// A length exceeds the block, or a name is empty, repeated, not in lower case or not text.
    #[error("a header block is malformed")]
    Malformed,
}

/// The headers of a stream. Names are in lower case.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Headers(Vec<(String, String)>);

impl Headers {
    /// Adds a header.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<String>) -> Self {
        self.0.push((name.to_ascii_lowercase(), value.into()));
        self
    }

    /// The value of a header; `name` is in lower case.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    /// All names and values, sorted.
    #[cfg(test)]
    pub(super) fn sorted(&self) -> Vec<(&str, &str)> {
        let all = self.0.iter().map(|(name, value)| (&**name, &**value));
        let mut all: Vec<_> = all.collect();
        all.sort_unstable();
        all
    }

    /// The uncompressed block.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut block = Vec::new();
        let number = |number: usize, block: &mut Vec<u8>| {
            block.extend_from_slice(&u32::try_from(number).unwrap_or(u32::MAX).to_be_bytes());
        };
        number(self.0.len(), &mut block);
        for (name, value) in &self.0 {
            for text in [name, value] {
                number(text.len(), &mut block);
                block.extend_from_slice(text.as_bytes());
            }
        }
        block
    }

    /// Reads an uncompressed block.
    ///
    /// # Errors
    /// See [`HeaderError`].
    pub fn decode(mut block: &[u8]) -> Result<Self, HeaderError> {
        let count = number(&mut block)?;
        if count > MOST_HEADERS {
            return Err(HeaderError::TooLong);
        }
        let mut headers: Vec<(String, String)> = Vec::new();
        for _ in 0..count {
            let (name, value) = (text(&mut block)?, text(&mut block)?);
            let is_good = !name.is_empty()
                && !name.bytes().any(|byte| byte.is_ascii_uppercase())
                && headers.iter().all(|(known, _)| *known != name);
            if !is_good {
                return Err(HeaderError::Malformed);
            }
            headers.push((name, value));
        }
        if block.is_empty() {
            Ok(Self(headers))
        } else {
            Err(HeaderError::Malformed)
        }
    }
}

fn number(block: &mut &[u8]) -> Result<usize, HeaderError> {
    let (bytes, rest) = block.split_first_chunk().ok_or(HeaderError::Malformed)?;
    *block = rest;
    Ok(u32::from_be_bytes(*bytes) as usize)
}

fn text(block: &mut &[u8]) -> Result<String, HeaderError> {
    let length = number(block)?;
    let (bytes, rest) = block
        .split_at_checked(length)
        .ok_or(HeaderError::Malformed)?;
    *block = rest;
    String::from_utf8(bytes.to_vec()).map_err(|_| HeaderError::Malformed)
}

/// Wraps blocks into a zlib stream, uncompressed: they are few and short, and a real compressor
/// would cost 256 KiB for each connection.
#[derive(Debug, Default)]
pub struct Deflater {
    begun: bool,
}

impl Deflater {
    /// Behind the header of the zlib stream.
    #[cfg(test)]
    pub(super) fn begun() -> Self {
        Self { begun: true }
    }

    /// The next block.
    pub fn compress(&mut self, block: &[u8]) -> Vec<u8> {
        let mut stream = Vec::with_capacity(block.len() + 32);
        if !self.begun {
            self.begun = true;
            // Deflate with a window of 32 KiB; a dictionary follows. The number is a multiple of 31.
            stream.extend_from_slice(&[0x78, 0x20]);
            stream.extend_from_slice(&CHECKSUM);
        }
        // The last, empty one is a sync flush: Go's decompressor gives nothing out before it.
        for piece in block.chunks(usize::from(u16::MAX)).chain([&[][..]]) {
            let length = u16::try_from(piece.len()).unwrap_or_default();
            stream.push(0);
            stream.extend_from_slice(&length.to_le_bytes());
            stream.extend_from_slice(&(!length).to_le_bytes());
            stream.extend_from_slice(piece);
        }
        stream
    }
}

/// Decompresses blocks of a zlib stream. Between two blocks it keeps the text that the next one may
/// refer to, instead of a decompressor with its 45 KiB: a sync flush ends at a byte boundary, so
/// that a new decompressor can continue there.
#[derive(Debug, Default)]
pub struct Inflater {
    /// The dictionary, and the end of the decompressed text; empty before the first block.
    history: Vec<u8>,
}

impl Inflater {
    /// The next block.
    ///
    /// # Errors
    /// [`HeaderError::Compression`] or [`HeaderError::TooLong`].
    pub fn decompress(&mut self, mut stream: &[u8]) -> Result<Vec<u8>, HeaderError> {
        if self.history.is_empty() {
            stream = without_zlib_header(stream)?;
            self.history = dictionary();
        }
        let mut inflate = Decompress::new(false);
        inflate
            .set_dictionary(&self.history)
            .map_err(|_| HeaderError::Compression)?;
        let mut block = Vec::with_capacity(512);
        loop {
            let (read, written) = (inflate.total_in(), inflate.total_out());
            let rest = stream
                .get(usize::try_from(read).unwrap_or(usize::MAX)..)
                .unwrap_or_default();
            let status = inflate
                .decompress_vec(rest, &mut block, FlushDecompress::Sync)
                .map_err(|_| HeaderError::Compression)?;
            if block.len() > LONGEST_BLOCK {
                return Err(HeaderError::TooLong);
            }
            let stands = (inflate.total_in(), inflate.total_out()) == (read, written);
            if status == Status::StreamEnd || (stands && block.len() < block.capacity()) {
                break;
            }
            if block.len() == block.capacity() {
                block.reserve(block.len().max(512));
            }
        }
        // The stream has ended, or the block is truncated or followed by garbage.
        if inflate.total_in() != stream.len() as u64 || !stream.ends_with(&[0, 0, 0xff, 0xff]) {
            return Err(HeaderError::Compression);
        }
        self.history.extend_from_slice(&block);
        let excess = self.history.len().saturating_sub(WINDOW);
        self.history.drain(..excess);
        Ok(block)
    }
}

/// See RFC 1950, section 2.2.
fn without_zlib_header(stream: &[u8]) -> Result<&[u8], HeaderError> {
    let (&[method, flags], rest) = stream
        .split_first_chunk::<ZLIB_HEADER>()
        .ok_or(HeaderError::Compression)?;
    let is_deflate = method & 0x0f == 8 && method >> 4 <= 7;
    let checks = (u16::from(method) << 8 | u16::from(flags)).is_multiple_of(31);
    if !is_deflate || !checks {
        return Err(HeaderError::Compression);
    }
    if flags & 0x20 == 0 {
        return Ok(rest);
    }
    rest.strip_prefix(&CHECKSUM).ok_or(HeaderError::Compression)
}
