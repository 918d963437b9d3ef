//! A container's standard input: a pipe or its terminal, fed by whoever an agent has connected.

use std::{
    fs::File,
    io::{self, Read as _, Write as _},
    os::fd::OwnedFd,
};

use rustix::fs::OFlags;

use super::watch::{Interest, Source, Watch};
use crate::protocol::{Failure, FailureKind};

/// Most bytes that are held for a container that doesn't read.
const HELD: usize = 4 << 10;

/// The standard input of a container.
#[derive(Debug, Default)]
pub(super) struct Input {
    /// Where it is written to; `None` if the container has none, or it is closed.
    target: Option<File>,
    /// Whether closing the target ends the input; a terminal has other users.
    is_pipe: bool,
    feed: Option<Feed>,
}

#[derive(Debug)]
struct Feed {
    source: File,
    /// Read and not written yet.
    held: Vec<u8>,
}

impl Input {
    /// Takes the end that is written to.
    pub(super) fn open(&mut self, target: OwnedFd, is_pipe: bool) -> io::Result<()> {
        no_waiting(&target)?;
        self.target = Some(target.into());
        self.is_pipe = is_pipe;
        Ok(())
    }

    /// The terminal, if it is one.
    pub(super) fn terminal(&self) -> Option<&File> {
        self.target.as_ref().filter(|_| !self.is_pipe)
    }

    /// Begins to feed from a descriptor.
    pub(super) fn feed(
        &mut self,
        source: OwnedFd,
        watch: &Watch,
        slot: u32,
    ) -> Result<(), Failure> {
        if self.target.is_none() {
            return Err(Failure::new(
                FailureKind::WrongState,
                "the container has no standard input, or it is closed",
            ));
        }
        if self.feed.is_some() {
            return Err(Failure::new(
                FailureKind::WrongState,
                "the container's standard input is being fed already",
            ));
        }
        let begin = no_waiting(&source)
            .and_then(|()| watch.add(&source, Source::Feed(slot), Interest::Read));
        begin.map_err(|error| {
            Failure::new(
                FailureKind::Invalid,
                format!("standard input can be fed from a pipe or socket only: {error}"),
            )
        })?;
        self.feed = Some(Feed {
            source: source.into(),
            held: Vec::new(),
        });
        Ok(())
    }

    /// Closes it for good.
    pub(super) fn close(&mut self, watch: &Watch) {
        self.end_feed(watch);
        if self.is_pipe
            && let Some(target) = self.target.take()
        {
            watch.remove(&target);
        }
    }

    fn end_feed(&mut self, watch: &Watch) {
        if let Some(feed) = self.feed.take() {
            watch.remove(&feed.source);
        }
        if let Some(target) = &self.target {
            watch.remove(target);
        }
    }

    /// Moves what can be moved without waiting, and changes what is waited for. `once` closes the
    /// input at the end of the feed.
    pub(super) fn advance(&mut self, watch: &Watch, slot: u32, once: bool) {
        let (Some(feed), Some(target)) = (&mut self.feed, &mut self.target) else {
            return;
        };
        if feed.held.is_empty() {
            let mut bytes = [0; HELD];
            match feed.source.read(&mut bytes) {
                Ok(got @ 1..) => feed.held.extend_from_slice(&bytes[..got]),
                Err(error) if is_for_later(&error) => return,
                Ok(0) | Err(_) => return self.feed_ended(watch, once),
            }
            watch.remove(&feed.source);
            // It can be watched only once, so what was left from an earlier time goes first.
            watch.remove(&*target);
            if watch
                .add(&*target, Source::Input(slot), Interest::Write)
                .is_err()
            {
                return self.close(watch);
            }
        }
        match target.write(&feed.held) {
            Ok(written) => drop(feed.held.drain(..written)),
            Err(error) if is_for_later(&error) => return,
            // The container has closed its input.
            Err(_) => return self.close(watch),
        }
        if feed.held.is_empty() {
            feed.held = Vec::new();
            watch.remove(&*target);
            if watch
                .add(&feed.source, Source::Feed(slot), Interest::Read)
                .is_err()
            {
                self.feed_ended(watch, once);
            }
        }
    }

    fn feed_ended(&mut self, watch: &Watch, once: bool) {
        self.end_feed(watch);
        if once {
            self.close(watch);
        }
    }
}

fn is_for_later(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
    )
}

fn no_waiting(fd: &OwnedFd) -> io::Result<()> {
    let flags = rustix::fs::fcntl_getfl(fd)?;
    rustix::fs::fcntl_setfl(fd, flags | OFlags::NONBLOCK)?;
    Ok(())
}
