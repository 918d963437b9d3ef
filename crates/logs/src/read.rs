//! The log API: reads the log of one attempt of a container, and follows it. Memory is bounded
//! regardless of the log's content.
//!
//! Unlike in the kubelet, which only reads the current file, rotated files belong to the log: all
//! kept files are read, a tail is complete right after a rotation, and a follower misses no line
//! however slow its client is. Only a tail does not include compressed files, which can't be read
//! from their end.

mod files;
mod follow;
mod gunzip;
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
use files::{FileSelection, LogFile, open_all};
use follow::LogReader;
use pieces::Pieces;
use render::{Render, Show};
use tail::{LogOffset, Start};

/// A log could not be read.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// There is no log at this path, or it can't be opened.
    #[error("cannot open log {}", path.display())]
    Open {
        /// The log.
        path: PathBuf,
        /// The error.
        #[source]
        source: io::Error,
    },
    /// The path is a link, a FIFO or another file that runtimes do not write logs to.
    #[error("log {} is not a regular file", .0.display())]
    NotAFile(PathBuf),
    /// Reading failed.
    #[error("cannot read log {}", path.display())]
    Read {
        /// The log.
        path: PathBuf,
        /// The error.
        #[source]
        source: io::Error,
    },
    /// The agent is shutting down.
    #[error("reading the log was canceled")]
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
    /// Continue until the container has exited and everything is read.
    pub follow: bool,
    /// Only this many lines from the end.
    pub tail_lines: Option<u64>,
    /// Only lines recorded at or after this time.
    pub since: Option<Timestamp>,
    /// Stop after this many bytes, possibly within a line.
    pub limit_bytes: Option<u64>,
    /// Prefix each line with its timestamp.
    pub timestamps: bool,
    /// Only one of the two streams.
    pub stream: Option<StdStream>,
    /// Skip rotated files.
    pub current_file_only: bool,
}

/// Opens a log and reads it. `ended` becomes true when the container has exited; it only matters
/// for following, and a dropped sender means the same.
///
/// Lines that are not in the CRI format are passed through unchanged.
///
/// # Errors
/// There is no log, or it can't be opened. Later errors are returned in the stream, which then
/// ends.
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

/// The end of a log as text: at most `max_lines` lines, truncated to the last `max_bytes` bytes at
/// a character boundary. Invalid UTF-8 is replaced. For the termination message of a container with
/// `terminationMessagePolicy: FallbackToLogsOnError`.
///
/// # Errors
/// There is no log, or it can't be read.
pub async fn tail_of(path: PathBuf, max_bytes: usize, max_lines: u64) -> Result<String, LogError> {
    spawn_blocking(move || read_tail(&path, max_bytes, max_lines))
        .await
        .map_err(|_| LogError::Stopped)?
}

fn open_at(path: &Path, options: &ReadOptions) -> Result<(Vec<LogFile>, Start), LogError> {
    let which = match options.tail_lines {
        _ if options.current_file_only => FileSelection::Current,
        Some(_) => FileSelection::Plain,
        None => FileSelection::All,
    };
    let files = open_all(path, which)?;
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
                    LogOffset {
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
    // The replacement of a truncated character at the start would be longer than the character's
    // rest.
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
