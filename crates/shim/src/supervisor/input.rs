//! A container's standard input: a pipe or its terminal, fed from descriptors of the agent.

use std::{
    fs::File,
    io::{self, Read as _, Write as _},
    os::fd::OwnedFd,
};

use rustix::fs::OFlags;

use super::watch::{EpollSet, EventSource, Interest};
use crate::protocol::{CallFailure, FailureKind};

/// Maximum buffered bytes of a feed for a container that does not read.
const HELD: usize = 4 << 10;

/// The standard input of a container.
#[derive(Debug, Default)]
pub(super) struct Input {
    /// The write end; `None` if the container has none, or it is closed.
    target: Option<File>,
    /// The target is a pipe, so closing it ends the input; a terminal is also used for output.
    is_pipe: bool,
    feeds: Vec<InputSource>,
}

#[derive(Debug)]
struct InputSource {
    source: File,
    /// Bytes read and not written yet.
    held: Vec<u8>,
}

impl Input {
    /// Sets the write end.
    pub(super) fn open(&mut self, target: OwnedFd, is_pipe: bool) -> io::Result<()> {
        set_nonblocking(&target)?;
        self.target = Some(target.into());
        self.is_pipe = is_pipe;
        Ok(())
    }

    /// The terminal, if it is one.
    pub(super) fn terminal(&self) -> Option<&File> {
        self.target.as_ref().filter(|_| !self.is_pipe)
    }

    /// Starts to feed from a descriptor.
    pub(super) fn feed(
        &mut self,
        source: OwnedFd,
        watch: &EpollSet,
        slot: u32,
    ) -> Result<(), CallFailure> {
        if self.target.is_none() {
            return Err(CallFailure::new(
                FailureKind::WrongState,
                "the container has no standard input, or it is closed",
            ));
        }
        let begin = set_nonblocking(&source)
            .and_then(|()| watch.add(&source, EventSource::Feed(slot), Interest::Read));
        begin.map_err(|error| {
            CallFailure::new(
                FailureKind::Invalid,
                format!("standard input needs a pipe or socket: {error}"),
            )
        })?;
        self.feeds.push(InputSource {
            source: source.into(),
            held: Vec::new(),
        });
        Ok(())
    }

    /// Closes it permanently.
    pub(super) fn close(&mut self, watch: &EpollSet) {
        for feed in std::mem::take(&mut self.feeds) {
            watch.remove(&feed.source);
        }
        if let Some(target) = &self.target {
            watch.remove(target);
        }
        if self.is_pipe {
            self.target = None;
        }
    }

    /// Copies without blocking, and updates what the loop waits for: each feed whose buffer is empty,
    /// and the container where one is not. `once` closes the input at the end of the first feed.
    pub(super) fn advance(&mut self, watch: &EpollSet, slot: u32, once: bool) {
        let Some(target) = &mut self.target else {
            return;
        };
        // epoll refuses to add a descriptor twice, so the registration of an earlier call is removed.
        watch.remove(&*target);
        let mut has_ended = false;
        let mut is_closed = false;
        self.feeds
            .retain_mut(|feed| match feed.copy(target, watch, slot) {
                Copied::Open => true,
                Copied::Ended => {
                    watch.remove(&feed.source);
                    has_ended = true;
                    false
                }
                Copied::TargetClosed => {
                    is_closed = true;
                    true
                }
            });
        if is_closed || (has_ended && once) {
            return self.close(watch);
        }
        if has_ended && self.feeds.is_empty() {
            self.feeds = Vec::new();
        }
        let waits = self.feeds.iter().any(|feed| !feed.held.is_empty());
        let source = EventSource::Input(slot);
        if waits && watch.add(&*target, source, Interest::Write).is_err() {
            self.close(watch);
        }
    }
}

/// The state of a feed after a copy.
enum Copied {
    Open,
    /// Nothing more comes from it.
    Ended,
    /// The container has closed its input.
    TargetClosed,
}

impl InputSource {
    /// Copies one read, or the rest of the last one. The source is watched only while the buffer is
    /// empty: a container that does not read must not keep the loop busy.
    fn copy(&mut self, target: &mut File, watch: &EpollSet, slot: u32) -> Copied {
        let was_held = !self.held.is_empty();
        if !was_held {
            let mut bytes = [0; HELD];
            match self.source.read(&mut bytes) {
                Ok(got @ 1..) => self.held.extend_from_slice(&bytes[..got]),
                Err(error) if is_for_later(&error) => return Copied::Open,
                Ok(0) | Err(_) => return Copied::Ended,
            }
        }
        match target.write(&self.held) {
            Ok(written) => drop(self.held.drain(..written)),
            Err(error) if is_for_later(&error) => {}
            Err(_) => return Copied::TargetClosed,
        }
        let is_held = !self.held.is_empty();
        if !is_held {
            self.held = Vec::new();
        }
        if is_held && !was_held {
            watch.remove(&self.source);
        }
        let source = EventSource::Feed(slot);
        if was_held && !is_held && watch.add(&self.source, source, Interest::Read).is_err() {
            return Copied::Ended;
        }
        Copied::Open
    }
}

fn is_for_later(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
    )
}

fn set_nonblocking(fd: &OwnedFd) -> io::Result<()> {
    let flags = rustix::fs::fcntl_getfl(fd)?;
    rustix::fs::fcntl_setfl(fd, flags | OFlags::NONBLOCK)?;
    Ok(())
}
