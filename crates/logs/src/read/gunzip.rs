//! Reads a compressed rotated file from its beginning to its end, with little memory.

use std::{
    fs::File,
    io::{self, Read as _},
    os::unix::fs::FileExt as _,
    sync::Arc,
};

use flate2::read::MultiGzDecoder;

/// A compressed file and how far it was read.
#[derive(Debug)]
pub(super) struct Gunzip {
    file: Arc<File>,
    /// Created at the first read and dropped at the end, because its buffers are large.
    decoder: Option<Box<MultiGzDecoder<FromStart>>>,
    /// Uncompressed bytes read.
    at: u64,
    ended: bool,
}

/// Reads the file without moving the offset that its descriptors share.
#[derive(Debug)]
struct FromStart {
    file: Arc<File>,
    at: u64,
}

impl io::Read for FromStart {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(into, self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}

impl Gunzip {
    pub(super) fn new(file: Arc<File>) -> Self {
        Self {
            file,
            decoder: None,
            at: 0,
            ended: false,
        }
    }

    /// Continues after the last read; fewer bytes mean the end, or that the rest is damaged.
    ///
    /// # Errors
    /// The disk can't be read, or `offset` is not where the last read ended.
    pub(super) fn read_at(&mut self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        if offset != self.at {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let mut filled = 0;
        while filled < into.len() && !self.ended {
            let decoder = self.decoder.get_or_insert_with(|| {
                let file = Arc::clone(&self.file);
                Box::new(MultiGzDecoder::new(FromStart { file, at: 0 }))
            });
            match decoder.read(&mut into[filled..]) {
                Ok(0) => self.ended = true,
                Ok(read) => filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // The decoder's own errors: the other files of the log are still worth reading.
                Err(error) if error.raw_os_error().is_none() => {
                    tracing::warn!(%error, "Skipping the rest of a corrupt compressed log");
                    self.ended = true;
                }
                Err(error) => return Err(error),
            }
        }
        if self.ended {
            self.decoder = None;
        }
        self.at += filled as u64;
        Ok(filled)
    }
}
