//! Reads a log from an offset to its end, and beyond: the loop waits for more, switches to the next
//! file when the log is rotated, and ends with the container.

use std::{collections::VecDeque, io, path::PathBuf, time::Duration};

use bytes::Bytes;
use tokio::{
    sync::watch,
    task::spawn_blocking,
    time::{Instant, sleep_until},
};

use super::{
    LogError,
    files::{LogFile, successor},
    notify::LogWatch,
    pieces::Pieces,
    render::Render,
    tail::{LogOffset, Start},
};

/// Size of a read.
const BLOCK: usize = 64 * 1024;

/// How long a rotated file is still read if its writer can't be observed to close it.
const LATE_WRITES: Duration = Duration::from_secs(1);

/// Poll interval if inotify is not available: the user's limit of watches is reached.
const POLL: Duration = Duration::from_secs(1);

/// A reader of one log.
pub(super) struct LogReader {
    path: PathBuf,
    cursor: Cursor,
    /// Files after the one being read.
    later: VecDeque<LogFile>,
    /// Lines that end before this offset are not shown.
    show_from: LogOffset,
    render: Render,
    follow: Option<Follow>,
    finished: bool,
}

/// The reader's position.
struct Cursor {
    file: LogFile,
    index: usize,
    offset: u64,
    pieces: Pieces,
    buffer: Vec<u8>,
}

struct Follow {
    ended: watch::Receiver<bool>,
    watch: Option<LogWatch>,
    watched: bool,
    /// The writer has closed the file.
    closed: bool,
    /// The file was rotated; after this time it gets no more writes.
    late_until: Option<Instant>,
}

/// The state at the end of the file.
enum AtEnd {
    More,
    Truncated,
    Successor(LogFile),
    Nothing,
}

impl LogReader {
    /// `ended` is given to follow the log until it becomes true.
    pub(super) fn new(
        path: PathBuf,
        mut files: VecDeque<LogFile>,
        start: Start,
        render: Render,
        ended: Option<watch::Receiver<bool>>,
    ) -> Option<Self> {
        files.drain(..start.read.file.min(files.len()));
        let file = files.pop_front()?;
        let cursor = Cursor {
            file,
            index: start.read.file,
            offset: start.read.offset,
            pieces: Pieces::starting_at(start.read.offset),
            buffer: Vec::new(),
        };
        let follow = ended.map(|ended| Follow {
            ended,
            watch: None,
            watched: false,
            closed: false,
            late_until: None,
        });
        let show_from = start.show;
        Some(Self {
            path,
            cursor,
            later: files,
            show_from,
            render,
            follow,
            finished: false,
        })
    }

    /// The next bytes; `None` at the end. Not cancel safe: dropping the future loses bytes.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, LogError> {
        loop {
            if self.finished || self.render.is_full() {
                return Ok(None);
            }
            // Checked before reading, so that the read sees everything written before the
            // container's exit.
            let (ended, sealed) = match &mut self.follow {
                None => (true, true),
                Some(follow) => (follow.has_ended(), follow.is_sealed()),
            };
            let sealed = sealed || self.cursor.file.is_compressed();
            match self.read().await? {
                AtEnd::More => {}
                AtEnd::Truncated => {
                    self.end_file();
                    self.cursor.offset = 0;
                    self.cursor.pieces = Pieces::starting_at(0);
                }
                AtEnd::Successor(next) if sealed || ended => self.switch_to(next),
                AtEnd::Nothing if ended => {
                    self.end_file();
                    self.render.finish();
                    self.finished = true;
                }
                AtEnd::Successor(_) => self.wait(true).await,
                AtEnd::Nothing => {
                    self.render.pause();
                    let shown = self.render.take();
                    if !shown.is_empty() {
                        return Ok(Some(shown.into()));
                    }
                    self.wait(false).await;
                }
            }
            let shown = self.render.take();
            if !shown.is_empty() {
                return Ok(Some(shown.into()));
            }
        }
    }

    /// Reads a block; at the end of the file looks for its successor.
    async fn read(&mut self) -> Result<AtEnd, LogError> {
        let file = self.cursor.file.clone();
        let offset = self.cursor.offset;
        let next = self.later.front().cloned();
        let path = (next.is_none() && self.follow.is_some()).then(|| self.path.clone());
        let mut buffer = std::mem::take(&mut self.cursor.buffer);
        let work = spawn_blocking(move || {
            buffer.resize(BLOCK, 0);
            let read = file.read_at(offset, &mut buffer)?;
            buffer.truncate(read);
            let found = if read > 0 {
                AtEnd::More
            } else if file.is_shorter_than(offset)? {
                AtEnd::Truncated
            } else if let Some(next) = next {
                AtEnd::Successor(next)
            } else {
                match path.and_then(|path| successor(&path, &file)) {
                    Some(next) => AtEnd::Successor(next),
                    None => AtEnd::Nothing,
                }
            };
            Ok::<_, io::Error>((buffer, found))
        });
        let result = work.await.map_err(|_| LogError::Stopped)?;
        let (buffer, found) = result.map_err(|source| LogError::Read {
            path: self.path.clone(),
            source,
        })?;
        let Cursor {
            index,
            pieces,
            offset,
            ..
        } = &mut self.cursor;
        *offset += buffer.len() as u64;
        let (render, index, show_from) = (&mut self.render, *index, self.show_from);
        pieces.feed(&buffer, |piece| {
            render.mute(
                LogOffset {
                    file: index,
                    offset: piece.line_at,
                } < show_from,
            );
            render.piece(piece);
        });
        // An idle follower keeps no buffer.
        self.cursor.buffer = if matches!(found, AtEnd::More) {
            buffer
        } else {
            Vec::new()
        };
        Ok(found)
    }

    fn end_file(&mut self) {
        let render = &mut self.render;
        self.cursor.pieces.finish(|piece| render.piece(piece));
    }

    fn switch_to(&mut self, next: LogFile) {
        self.end_file();
        self.later.pop_front();
        self.cursor.file = next;
        self.cursor.index += 1;
        self.cursor.offset = 0;
        self.cursor.pieces = Pieces::starting_at(0);
        if let Some(follow) = &mut self.follow {
            follow.closed = false;
            follow.late_until = None;
            let turned = follow
                .watch
                .as_mut()
                .map(|watch| watch.switch_to(&self.cursor.file));
            if let Some(Err(error)) = turned {
                follow.stop_watching(&error);
            }
        }
    }

    /// Waits until the log may have grown, `put_aside` or not, or the container has exited.
    async fn wait(&mut self, put_aside: bool) {
        let Some(follow) = &mut self.follow else {
            return;
        };
        if !follow.watched {
            follow.watched = true;
            match LogWatch::new(&self.path, &self.cursor.file) {
                Ok(watch) => follow.watch = Some(watch),
                Err(error) => follow.stop_watching(&error),
            }
            // Data from before the watch is found by the next read.
            return;
        }
        let now = Instant::now();
        if put_aside {
            follow.late_until.get_or_insert(now + LATE_WRITES);
        }
        let poll = follow.watch.is_none().then_some(now + POLL);
        let wake = follow.late_until.into_iter().chain(poll).min();
        let wake = async {
            match wake {
                Some(at) => sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        let event = async {
            match &follow.watch {
                Some(watch) => watch.wait().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = wake => {}
            // A dropped sender means that the container has exited, which the caller checks.
            _ = follow.ended.changed() => {}
            result = event => if let Err(error) = result {
                follow.stop_watching(&error);
            }
        }
    }
}

impl Follow {
    fn has_ended(&mut self) -> bool {
        let gone = self.ended.has_changed().is_err();
        *self.ended.borrow_and_update() || gone
    }

    /// True if the file being read gets no more writes after it was replaced.
    fn is_sealed(&mut self) -> bool {
        match self.watch.as_mut().map(LogWatch::drain) {
            Some(Ok(Some(closed))) => self.closed = closed,
            Some(Err(error)) => self.stop_watching(&error),
            Some(Ok(None)) | None => {}
        }
        self.closed || self.late_until.is_some_and(|until| Instant::now() >= until)
    }

    fn stop_watching(&mut self, error: &io::Error) {
        tracing::warn!(%error, "Cannot watch a followed log, polling it each second");
        self.watch = None;
    }
}
