//! A container's output on its way into the log.

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

use super::watch::{Interest, Source, Watch};
use crate::{
    clock,
    log::{Lines, LogFile, Stamp},
};

/// Bytes of one read.
const READ: usize = 16 << 10;

/// Reads before others have their turn.
const READS: usize = 4;

/// Reads after the end of a container: more than a pipe holds.
const LAST_READS: usize = 128;

/// Both outputs of a container, or its terminal as the first one.
#[derive(Debug)]
pub(super) struct Output {
    pub(super) log: LogFile,
    streams: [Option<Stream>; 2],
}

#[derive(Debug)]
struct Stream {
    file: File,
    lines: Lines,
}

impl Output {
    /// Of a container whose outputs are not there yet.
    pub(super) fn new(log: LogFile) -> Self {
        Self {
            log,
            streams: [None, None],
        }
    }

    /// Makes the pipes; the ends that the container writes to.
    pub(super) fn make_pipes(&mut self, longest: usize) -> io::Result<[OwnedFd; 2]> {
        let mut theirs = Vec::new();
        for (index, stream) in [StdStream::Stdout, StdStream::Stderr]
            .into_iter()
            .enumerate()
        {
            let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
            self.set(index, read, Lines::new(stream, longest))?;
            theirs.push(write);
        }
        let two = <[OwnedFd; 2]>::try_from(theirs);
        Ok(two.expect("one end for each stream"))
    }

    /// Takes the terminal, all of whose output is that of the standard output.
    pub(super) fn take_terminal(&mut self, terminal: OwnedFd, longest: usize) -> io::Result<()> {
        self.set(0, terminal, Lines::new(StdStream::Stdout, longest))
    }

    fn set(&mut self, index: usize, fd: OwnedFd, lines: Lines) -> io::Result<()> {
        let flags = rustix::fs::fcntl_getfl(&fd)?;
        rustix::fs::fcntl_setfl(&fd, flags | OFlags::NONBLOCK)?;
        self.streams[index] = Some(Stream {
            file: fd.into(),
            lines,
        });
        Ok(())
    }

    /// Reads from now on.
    pub(super) fn watch(&self, watch: &Watch, slot: u32) -> io::Result<()> {
        for (index, stream) in self.streams.iter().enumerate() {
            if let Some(stream) = stream {
                watch.add(&stream.file, Source::Output(slot, index), Interest::Read)?;
            }
        }
        Ok(())
    }

    /// Reads what there is at one output, though not for ever. Returns a warning, if there is one.
    pub(super) fn read(
        &mut self,
        index: usize,
        watch: &Watch,
        stamp: &mut Stamp,
    ) -> Option<String> {
        self.read_at_most(index, READS, watch, stamp)
    }

    /// Reads what a container has left behind.
    pub(super) fn drain(&mut self, watch: &Watch, stamp: &mut Stamp) -> Option<String> {
        let first = self.read_at_most(0, LAST_READS, watch, stamp);
        self.read_at_most(1, LAST_READS, watch, stamp).or(first)
    }

    /// Ends the log; what comes later is lost.
    pub(super) fn close(&mut self, watch: &Watch, stamp: &mut Stamp) -> Option<String> {
        let warning = self.drain(watch, stamp);
        let ends = (0..2).filter_map(|index| self.end(index, watch, stamp));
        ends.last().or(warning)
    }

    fn read_at_most(
        &mut self,
        index: usize,
        reads: usize,
        watch: &Watch,
        stamp: &mut Stamp,
    ) -> Option<String> {
        let mut warning = None;
        let mut batch = Vec::new();
        for _ in 0..reads {
            let stream = self.streams[index].as_mut()?;
            let mut bytes = [0; READ];
            match stream.file.read(&mut bytes) {
                Ok(got @ 1..) => {
                    batch.clear();
                    let now = stamp.of(clock::now_ns());
                    stream.lines.push(&bytes[..got], now, &mut batch);
                    warning = self.log.append(&batch, now).or(warning);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // A terminal whose other end is closed fails with EIO.
                Ok(0) | Err(_) => return self.end(index, watch, stamp).or(warning),
            }
        }
        warning
    }

    fn end(&mut self, index: usize, watch: &Watch, stamp: &mut Stamp) -> Option<String> {
        let mut stream = self.streams[index].take()?;
        watch.remove(&stream.file);
        let mut batch = Vec::new();
        let now = stamp.of(clock::now_ns());
        stream.lines.end(now, &mut batch);
        self.log.append(&batch, now)
    }
}
