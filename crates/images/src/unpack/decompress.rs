//! Decompresses a download to the archive.

use std::{
    io::{self, BufRead, BufReader, Read},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use super::UnpackLimits;

const GZIP: [u8; 2] = [0x1f, 0x8b];
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// Skippable frames begin with one of sixteen numbers.
const ZSTD_SKIPPABLE: [u8; 3] = [0x2a, 0x4d, 0x18];
/// Maximum window of a stream, as a power of two: 64 MiB. Layer writers stay below; the memory is
/// this program's.
const ZSTD_WINDOW: u32 = 26;
const BUFFER: usize = 64 * 1024;

/// Received bytes.
#[derive(Debug, Clone, Default)]
pub(super) struct ByteCounter(Arc<AtomicU64>);

impl ByteCounter {
    pub(super) fn add(&self, bytes: u64) {
        self.0.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(super) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The uncompressed stream. Detects the format by the first bytes, because media types are often
/// wrong.
pub(super) fn plain<'a>(source: impl Read + Send + 'a) -> io::Result<Box<dyn Read + Send + 'a>> {
    let mut source = BufReader::with_capacity(BUFFER, source);
    let mut start = Vec::new();
    // A read may return a single byte.
    while start.len() < 4 {
        let mut byte = [0];
        match source.read(&mut byte) {
            Ok(0) => break,
            Ok(_) => start.push(byte[0]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    let form = Compression::of(&start);
    let whole = io::Cursor::new(start).chain(source);
    match form {
        Compression::Gzip => Ok(Box::new(flate2::bufread::MultiGzDecoder::new(whole))),
        Compression::Zstd => zstd_stream(whole),
        Compression::Plain => Ok(Box::new(whole)),
    }
}

/// The compression of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Compression {
    Plain,
    Gzip,
    Zstd,
}

impl Compression {
    /// By its first four bytes.
    pub(super) fn of(start: &[u8]) -> Self {
        let is_skippable = start.ends_with(&ZSTD_SKIPPABLE)
            && start.len() == 4
            && start.first().is_some_and(|byte| byte & 0xf0 == 0x50);
        if start.starts_with(&GZIP) {
            Self::Gzip
        } else if start == ZSTD || is_skippable {
            Self::Zstd
        } else {
            Self::Plain
        }
    }
}

fn zstd_stream<'a>(source: impl BufRead + Send + 'a) -> io::Result<Box<dyn Read + Send + 'a>> {
    let mut decoder = zstd::Decoder::with_buffer(source)?;
    decoder.window_log_max(ZSTD_WINDOW)?;
    Ok(Box::new(decoder))
}

/// Why decompression was aborted.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct LimitExceeded(pub(super) &'static str);

/// An uncompressed stream with limited size, absolute and relative to the received bytes.
pub(super) struct BoundedReader<R> {
    plain: R,
    arrived: ByteCounter,
    passed: u64,
    most: u64,
    ratio: u64,
    ratio_from: u64,
}

impl<R> BoundedReader<R> {
    pub(super) fn new(plain: R, arrived: ByteCounter, limits: &UnpackLimits) -> Self {
        Self {
            plain,
            arrived,
            passed: 0,
            most: limits.bytes,
            ratio: limits.ratio,
            ratio_from: limits.ratio_from,
        }
    }
}

impl<R: Read> Read for BoundedReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.plain.read(buffer)?;
        self.passed += read as u64;
        if self.passed > self.most {
            return Err(io::Error::other(LimitExceeded("it is larger than allowed")));
        }
        let most = self.arrived.get().saturating_mul(self.ratio);
        if self.passed > self.ratio_from && self.passed > most {
            let why = "its compression ratio is higher than allowed";
            return Err(io::Error::other(LimitExceeded(why)));
        }
        Ok(read)
    }
}
