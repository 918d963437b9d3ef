//! The log API: reads the log of one attempt of a container, and follows it. Memory is bounded
//! whatever the log holds.
//!
//! Unlike the kubelet, which reads the current file only, the plain files that rotation put aside
//! belong to the log: a tail is as long as asked for just after a rotation too, and a follower
//! misses no line. Compressed files are left out.

mod files;
mod follow;
mod notify;
mod pieces;
mod render;
mod tail;

use std::{
    io,
    path::{Path, PathBuf},
};

use bytes::Bytes;
use futures_core::Stream;
use jiff::Timestamp;
use tokio::{sync::watch, task::spawn_blocking};

use crate::entry::StdStream;
use files::{LogFile, open_all};
use follow::LogReader;
use pieces::Pieces;
use render::{Render, Show};
use tail::{Place, Start};

/// Most bytes of a termination message that is taken from the log.
pub const TERMINATION_TAIL_BYTES: usize = 2048;

/// Most lines of a termination message that is taken from the log.
pub const TERMINATION_TAIL_LINES: u64 = 80;

/// Why a log could not be read.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// There is no log at this path, or it can't be opened.
    #[error("open log {}", path.display())]
    Open {
        /// The log.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// The path names a link, a pipe or something else that no runtime writes logs to.
    #[error("log {} is not a regular file", .0.display())]
    NotAFile(PathBuf),
    /// Reading failed on the way.
    #[error("read log {}", path.display())]
    Read {
        /// The log.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The agent is shutting down.
    #[error("reading of the log was stopped")]
    Stopped,
}

impl LogError {
    /// True if there is no log: the container has never started, or its log was removed.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Open { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }
}

/// What to read: the options of a pod's `log` subresource. `previous` chooses another path.
#[derive(Debug, Clone, Default)]
pub struct ReadOptions {
    /// Go on until the container has ended and everything is read.
    pub follow: bool,
    /// Only the last so many lines.
    pub tail_lines: Option<u64>,
    /// Only lines recorded at or after this time.
    pub since: Option<Timestamp>,
    /// End after so many bytes, within a line if need be.
    pub limit_bytes: Option<u64>,
    /// Put the time of recording in front of each line.
    pub timestamps: bool,
    /// Only one of the two streams.
    pub stream: Option<StdStream>,
    /// Leave out the files that rotation put aside.
    pub current_file_only: bool,
}

/// Opens a log and reads it. `ended` turns true when the container has ended; it counts for
/// following only, and a dropped sender means the same.
///
/// Lines that are not of the CRI format are passed through as they are.
///
/// # Errors
/// There is no log, or it can't be opened. Later errors come in the stream, which then ends.
pub async fn stream(
    path: PathBuf,
    options: ReadOptions,
    ended: watch::Receiver<bool>,
) -> Result<impl Stream<Item = Result<Bytes, LogError>> + Send + use<>, LogError> {
    let show = Show {
        timestamps: options.timestamps,
        since: options.since,
        stream: options.stream,
        limit: options.limit_bytes,
    };
    let nothing = options.tail_lines == Some(0) && !options.follow;
    let ended = options.follow.then_some(ended);
    let (path, files, start) = spawn_blocking(move || {
        let (files, start) = open_at(&path, &options)?;
        Ok::<_, LogError>((path, files, start))
    })
    .await
    .map_err(|_| LogError::Stopped)??;
    let reader = match nothing {
        true => None,
        false => LogReader::new(path, files.into(), start, Render::new(show), ended),
    };
    Ok(futures_util::stream::unfold(reader, |reader| async {
        let mut reader = reader?;
        match reader.next().await {
            Ok(bytes) => bytes.map(|bytes| (Ok(bytes), Some(reader))),
            Err(error) => Some((Err(error), None)),
        }
    }))
}

/// The end of a log as text: at most `max_lines` lines, of which at most the last `max_bytes` bytes
/// at a character boundary. Bytes that are not UTF-8 are replaced. For the termination message of a
/// container with `terminationMessagePolicy: FallbackToLogsOnError`.
///
/// # Errors
/// There is no log, or it can't be read.
pub async fn tail_of(path: PathBuf, max_bytes: usize, max_lines: u64) -> Result<String, LogError> {
    spawn_blocking(move || read_tail(&path, max_bytes, max_lines))
        .await
        .map_err(|_| LogError::Stopped)?
}

fn open_at(path: &Path, options: &ReadOptions) -> Result<(Vec<LogFile>, Start), LogError> {
    let files = open_all(path, !options.current_file_only)?;
    let start = match options.tail_lines {
        None => Start::default(),
        Some(lines) => {
            tail::find(&files, lines, options.stream).map_err(|source| LogError::Read {
                path: path.to_owned(),
                source,
            })?
        }
    };
    Ok((files, start))
}

fn read_tail(path: &Path, max_bytes: usize, max_lines: u64) -> Result<String, LogError> {
    let options = ReadOptions {
        tail_lines: Some(max_lines),
        ..ReadOptions::default()
    };
    let (files, start) = open_at(path, &options)?;
    let mut render = Render::new(Show::default());
    let mut kept: Vec<u8> = Vec::new();
    let mut buffer = vec![0; 16 * 1024];
    for (index, file) in files.iter().enumerate().skip(start.read.file) {
        let mut offset = if index == start.read.file {
            start.read.offset
        } else {
            0
        };
        let mut pieces = Pieces::starting_at(offset);
        loop {
            let read = file
                .read_at(offset, &mut buffer)
                .map_err(|source| LogError::Read {
                    path: path.to_owned(),
                    source,
                })?;
            pieces.feed(&buffer[..read], |piece| {
                render.mute(
                    Place {
                        file: index,
                        offset: piece.line_at,
                    } < start.show,
                );
                render.piece(piece);
            });
            offset += read as u64;
            keep_end(&mut kept, render.take(), max_bytes);
            if read < buffer.len() {
                break;
            }
        }
        pieces.finish(|piece| render.piece(piece));
    }
    render.finish();
    keep_end(&mut kept, render.take(), max_bytes);
    // A cut character at the start would become more bytes than it had.
    let whole = kept
        .iter()
        .take(4)
        .take_while(|byte| **byte & 0xC0 == 0x80)
        .count();
    let text = String::from_utf8_lossy(&kept[if kept.len() < max_bytes { 0 } else { whole }..]);
    let cut =
        (0..=text.len()).find(|at| text.is_char_boundary(*at) && text.len() - at <= max_bytes);
    Ok(text[cut.unwrap_or(text.len())..].to_owned())
}

fn keep_end(kept: &mut Vec<u8>, more: Vec<u8>, max_bytes: usize) {
    kept.extend(more);
    kept.drain(..kept.len().saturating_sub(max_bytes));
}

#[cfg(test)]
mod tests;
