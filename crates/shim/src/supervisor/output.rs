//! Copies a container's output to its log, and to its attachments.

use std::{
    fs::File,
    io::{self, Read as _},
    os::fd::OwnedFd,
};

use rubelet_logs::entry::StdStream;
use rustix::{
    fs::OFlags,
    pipe::{PipeFlags, pipe_with},
};

use super::{
    attachments::Attachments,
    watch::{EpollSet, EventSource, Interest},
};
use crate::{
    clock,
    log::{LineSplitter, LogFile, TimestampFormatter},
};

/// Bytes of one read.
const READ: usize = 16 << 10;

/// Reads of one output before others are served.
const READS: usize = 4;

/// Reads after a container's exit: more than a full pipe.
const LAST_READS: usize = 128;

/// The parts of the shim that reading the output of one container needs.
#[derive(Debug)]
pub(super) struct OutputContext<'a> {
    /// The container's number.
    pub(super) slot: u32,
    pub(super) watch: &'a EpollSet,
    pub(super) stamp: &'a mut TimestampFormatter,
    pub(super) attachments: &'a mut Attachments,
}

/// Both outputs of a container, or its terminal as the first one.
#[derive(Debug)]
pub(super) struct Output {
    pub(super) log: LogFile,
    streams: [Option<Stream>; 2],
}

#[derive(Debug)]
struct Stream {
    file: File,
    lines: LineSplitter,
}

impl Output {
    /// Output without streams yet.
    pub(super) fn new(log: LogFile) -> Self {
        Self {
            log,
            streams: [None, None],
        }
    }

    /// Creates the pipes; returns the container's ends.
    pub(super) fn make_pipes(&mut self, longest: usize) -> io::Result<[OwnedFd; 2]> {
        let mut theirs = Vec::new();
        for (index, stream) in [StdStream::Stdout, StdStream::Stderr]
            .into_iter()
            .enumerate()
        {
            let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
            self.set(index, read, LineSplitter::new(stream, longest))?;
            theirs.push(write);
        }
        let two = <[OwnedFd; 2]>::try_from(theirs);
        Ok(two.expect("one end for each stream"))
    }

    /// Sets the terminal; all its output is logged as standard output.
    pub(super) fn take_terminal(&mut self, terminal: OwnedFd, longest: usize) -> io::Result<()> {
        self.set(0, terminal, LineSplitter::new(StdStream::Stdout, longest))
    }

    fn set(&mut self, index: usize, fd: OwnedFd, lines: LineSplitter) -> io::Result<()> {
        let flags = rustix::fs::fcntl_getfl(&fd)?;
        rustix::fs::fcntl_setfl(&fd, flags | OFlags::NONBLOCK)?;
        self.streams[index] = Some(Stream {
            file: fd.into(),
            lines,
        });
        Ok(())
    }

    /// Registers the streams with the loop.
    pub(super) fn watch(&self, watch: &EpollSet, slot: u32) -> io::Result<()> {
        for (index, stream) in self.streams.iter().enumerate() {
            if let Some(stream) = stream {
                watch.add(
                    &stream.file,
                    EventSource::Output(slot, index),
                    Interest::Read,
                )?;
            }
        }
        Ok(())
    }

    /// Reports whether a stream has not ended.
    pub(super) fn is_open(&self, index: usize) -> bool {
        self.streams[index].is_some()
    }

    /// Reads from one output, a bounded number of times. May return a warning.
    pub(super) fn read(&mut self, index: usize, outlet: &mut OutputContext<'_>) -> Option<String> {
        self.read_at_most(index, READS, outlet)
    }

    /// Reads the remaining output of a container.
    pub(super) fn drain(&mut self, outlet: &mut OutputContext<'_>) -> Option<String> {
        let first = self.read_at_most(0, LAST_READS, outlet);
        self.read_at_most(1, LAST_READS, outlet).or(first)
    }

    /// Closes the log; later output is lost.
    pub(super) fn close(&mut self, outlet: &mut OutputContext<'_>) -> Option<String> {
        // Not up to the end of the pipe: a process that left the container may hold it open
        // forever.
        let warning = self.drain(outlet);
        let ends = (0..2).filter_map(|index| self.end(index, outlet));
        ends.last().or(warning)
    }

    fn read_at_most(
        &mut self,
        index: usize,
        reads: usize,
        outlet: &mut OutputContext<'_>,
    ) -> Option<String> {
        let mut warning = None;
        let mut batch = Vec::new();
        for _ in 0..reads {
            let stream = self.streams[index].as_mut()?;
            let mut bytes = [0; READ];
            match stream.file.read(&mut bytes) {
                Ok(got @ 1..) => {
                    batch.clear();
                    let now = outlet.stamp.of(clock::now_ns());
                    stream.lines.push(&bytes[..got], now, &mut batch);
                    warning = self.log.append(&batch, now).or(warning);
                    let (slot, watch) = (outlet.slot, outlet.watch);
                    outlet.attachments.write(slot, index, &bytes[..got], watch);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // A terminal fails with EIO after its last user has closed it.
                Ok(0) | Err(_) => return self.end(index, outlet).or(warning),
            }
        }
        warning
    }

    fn end(&mut self, index: usize, outlet: &mut OutputContext<'_>) -> Option<String> {
        let mut stream = self.streams[index].take()?;
        outlet.watch.remove(&stream.file);
        outlet.attachments.end(outlet.slot, index, outlet.watch);
        let mut batch = Vec::new();
        let now = outlet.stamp.of(clock::now_ns());
        stream.lines.end(now, &mut batch);
        self.log.append(&batch, now)
    }
}
