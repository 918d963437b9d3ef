//! Attachments: descriptors of agents that get a copy of a container's output.
//!
//! The shim does not wait for a slow reader. Bytes that its descriptor does not accept go to a
//! small backlog; an attachment that overruns its backlog is closed and reported, so that no output
//! is lost silently.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{self, Write as _},
    os::fd::OwnedFd,
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::OFlags,
};

use super::watch::{EpollSet, EventSource, Interest};

/// Maximum backlog for a reader that is slower than its container, in bytes. The agent's pipe holds
/// much more.
const BACKLOG: usize = 64 << 10;

/// The attachments of all containers, by numbers that are never reused. Not part of the containers:
/// the last output of a deleted container may still wait for its reader.
#[derive(Debug, Default)]
pub(super) struct Attachments {
    open: BTreeMap<u32, Attachment>,
    /// Container and identifier of each attachment that was closed early.
    overrun: Vec<(String, String)>,
}

/// One descriptor of an attachment.
#[derive(Debug)]
pub(super) struct Attachment {
    /// The container's number.
    slot: u32,
    container: String,
    /// 0 and 1 for standard output and error.
    stream: usize,
    attach_id: String,
    target: File,
    backlog: Vec<u8>,
    /// The stream ended: the attachment is closed once the backlog is written.
    has_ended: bool,
}

impl Attachments {
    /// Adds an attachment; its descriptor must be a pipe or a socket.
    pub(super) fn add(
        &mut self,
        number: u32,
        attachment: Attachment,
        watch: &EpollSet,
    ) -> io::Result<()> {
        let flags = rustix::fs::fcntl_getfl(&attachment.target)?;
        rustix::fs::fcntl_setfl(&attachment.target, flags | OFlags::NONBLOCK)?;
        // Without waiting for the reader's hangup, the descriptor of a reader that went away would
        // stay open until the container writes something.
        let source = EventSource::Attachment(number);
        watch.add(&attachment.target, source, Interest::Errors)?;
        self.open.insert(number, attachment);
        Ok(())
    }

    /// Writes what a container has written to the attachments of that stream.
    pub(super) fn write(&mut self, slot: u32, stream: usize, bytes: &[u8], watch: &EpollSet) {
        if self.open.is_empty() {
            return;
        }
        let overrun = &mut self.overrun;
        self.open.retain(|number, one| {
            if (one.slot, one.stream) != (slot, stream) {
                return true;
            }
            // The backlog first: the bytes keep their order.
            let wrote = one.flush().and_then(|()| one.write(bytes));
            match wrote.map(|()| one.backlog.len()) {
                Ok(0) => true,
                Ok(held) if held <= BACKLOG => one.wait_to_write(*number, watch),
                Ok(_) => {
                    overrun.push((one.container.clone(), one.attach_id.clone()));
                    watch.remove(&one.target);
                    false
                }
                // The reader has closed it.
                Err(_) => {
                    watch.remove(&one.target);
                    false
                }
            }
        });
    }

    /// A stream of a container ended: so do its attachments, once their backlogs are written.
    pub(super) fn end(&mut self, slot: u32, stream: usize, watch: &EpollSet) {
        self.open.retain(|_, one| {
            let ends = (one.slot, one.stream) == (slot, stream);
            one.has_ended |= ends;
            let stays = !ends || !one.backlog.is_empty();
            if !stays {
                watch.remove(&one.target);
            }
            stays
        });
    }

    /// An attachment is writable, or its reader has closed it.
    pub(super) fn advance(&mut self, number: u32, watch: &EpollSet) {
        let Some(one) = self.open.get_mut(&number) else {
            return;
        };
        let stays = if one.backlog.is_empty() {
            // A write since the event was read may have emptied the backlog.
            !one.is_abandoned()
        } else {
            match one.flush() {
                Ok(()) if !one.backlog.is_empty() => true,
                Ok(()) => !one.has_ended,
                Err(_) => false,
            }
        };
        let source = EventSource::Attachment(number);
        let stays = stays
            && (!one.backlog.is_empty()
                || watch.change(&one.target, source, Interest::Errors).is_ok());
        if !stays {
            watch.remove(&one.target);
            self.open.remove(&number);
        }
    }

    pub(super) fn remove(&mut self, attach_id: &str, watch: &EpollSet) {
        self.open.retain(|_, one| {
            let stays = one.attach_id != attach_id;
            if !stays {
                watch.remove(&one.target);
            }
            stays
        });
    }

    /// Container and identifier of each attachment that was closed early since the last call.
    pub(super) fn take_overrun(&mut self) -> Vec<(String, String)> {
        std::mem::take(&mut self.overrun)
    }
}

impl Attachment {
    /// A descriptor for a stream of a container, which is given by its number and identifier.
    pub(super) fn new(
        (slot, container): (u32, &str),
        stream: usize,
        attach_id: &str,
        target: OwnedFd,
    ) -> Self {
        Self {
            slot,
            container: container.to_owned(),
            stream,
            attach_id: attach_id.to_owned(),
            target: target.into(),
            backlog: Vec::new(),
            has_ended: false,
        }
    }

    /// Writes the backlog as far as the descriptor takes it.
    fn flush(&mut self) -> io::Result<()> {
        if self.backlog.is_empty() {
            return Ok(());
        }
        let written = write_some(&mut self.target, &self.backlog)?;
        self.backlog.drain(..written);
        if self.backlog.is_empty() {
            self.backlog = Vec::new();
        }
        Ok(())
    }

    /// Writes, and puts the rest into the backlog.
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let written = match self.backlog.is_empty() {
            true => write_some(&mut self.target, bytes)?,
            false => 0,
        };
        self.backlog.extend_from_slice(&bytes[written..]);
        Ok(())
    }

    fn wait_to_write(&self, number: u32, watch: &EpollSet) -> bool {
        let source = EventSource::Attachment(number);
        let waits = watch.change(&self.target, source, Interest::Write).is_ok();
        if !waits {
            watch.remove(&self.target);
        }
        waits
    }

    /// Reports whether the other end is closed.
    fn is_abandoned(&self) -> bool {
        let mut ended = [PollFd::new(&self.target, PollFlags::empty())];
        !matches!(poll(&mut ended, Some(&Timespec::default())), Ok(0))
    }
}

/// Writes until all is written or the descriptor takes no more; returns how much was written.
fn write_some(target: &mut File, bytes: &[u8]) -> io::Result<usize> {
    let mut written = 0;
    while written < bytes.len() {
        match target.write(&bytes[written..]) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(more) => written += more,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(written)
}
