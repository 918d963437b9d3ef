//! The epoll set of the loop.

use std::{
    io,
    mem::MaybeUninit,
    os::fd::{AsFd, OwnedFd},
};

use rustix::event::{Timespec, epoll};

/// The owner of a ready descriptor. Numbers of connections, containers, execs and attachments are
/// never reused, so that a late event does not reach another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EventSource {
    /// A child exited.
    Children,
    /// An agent connects.
    Listener,
    /// The connection of an agent is readable or writable.
    Connection(u32),
    /// The init of a container reports.
    Container(u32),
    /// A process that joins a container reports.
    Exec(u32),
    /// A container wrote to an output: 0 and 1 for standard output and error.
    Output(u32, usize),
    /// A feed has input for a container.
    Feed(u32),
    /// A container can take input.
    Input(u32),
    /// An attachment can take output, or its reader has closed it.
    Attachment(u32),
}

impl EventSource {
    fn to_number(self) -> u64 {
        let (kind, slot) = match self {
            Self::Children => (0, 0),
            Self::Listener => (1, 0),
            Self::Connection(slot) => (2, slot),
            Self::Container(slot) => (3, slot),
            Self::Exec(slot) => (4, slot),
            Self::Output(slot, 0) => (5, slot),
            Self::Output(slot, _) => (6, slot),
            Self::Feed(slot) => (7, slot),
            Self::Input(slot) => (8, slot),
            Self::Attachment(slot) => (9, slot),
        };
        kind << 32 | u64::from(slot)
    }

    fn from_number(number: u64) -> Option<Self> {
        let slot = u32::try_from(number & u64::from(u32::MAX)).ok()?;
        Some(match number >> 32 {
            0 => Self::Children,
            1 => Self::Listener,
            2 => Self::Connection(slot),
            3 => Self::Container(slot),
            4 => Self::Exec(slot),
            5 => Self::Output(slot, 0),
            6 => Self::Output(slot, 1),
            7 => Self::Feed(slot),
            8 => Self::Input(slot),
            9 => Self::Attachment(slot),
            _ => return None,
        })
    }
}

/// The events to wait for at a descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Interest {
    /// Readable.
    Read,
    /// Writable.
    Write,
    /// Both.
    Both,
    /// Errors and the other side's end only, which epoll reports in any case.
    Errors,
}

impl Interest {
    fn flags(self) -> epoll::EventFlags {
        match self {
            Self::Read => epoll::EventFlags::IN,
            Self::Write => epoll::EventFlags::OUT,
            Self::Both => epoll::EventFlags::IN | epoll::EventFlags::OUT,
            Self::Errors => epoll::EventFlags::empty(),
        }
    }
}

/// An epoll instance. Level-triggered: unhandled events are reported again.
#[derive(Debug)]
pub(super) struct EpollSet {
    epoll: OwnedFd,
}

/// Maximum events of one wait.
pub(super) const MAX_EVENTS: usize = 16;

impl EpollSet {
    pub(super) fn new() -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        Ok(Self { epoll })
    }

    /// Adds a descriptor, until [`Self::remove`]. Closing it is not enough: if a child that was
    /// forked meanwhile has a copy, epoll keeps reporting it.
    pub(super) fn add(
        &self,
        fd: impl AsFd,
        source: EventSource,
        interest: Interest,
    ) -> io::Result<()> {
        let data = epoll::EventData::new_u64(source.to_number());
        epoll::add(&self.epoll, fd, data, interest.flags())?;
        Ok(())
    }

    /// Changes the events of a descriptor.
    pub(super) fn change(
        &self,
        fd: impl AsFd,
        source: EventSource,
        interest: Interest,
    ) -> io::Result<()> {
        let data = epoll::EventData::new_u64(source.to_number());
        epoll::modify(&self.epoll, fd, data, interest.flags())?;
        Ok(())
    }

    /// Removes a descriptor; does nothing if it is not in the set.
    pub(super) fn remove(&self, fd: impl AsFd) {
        let _ = epoll::delete(&self.epoll, fd);
    }

    /// Waits until a descriptor is ready, for at most `most`.
    pub(super) fn wait(
        &self,
        most: Option<&Timespec>,
    ) -> io::Result<impl Iterator<Item = EventSource> + use<>> {
        let mut events = [const { MaybeUninit::<epoll::Event>::uninit() }; MAX_EVENTS];
        let ready = match epoll::wait(&self.epoll, &mut events[..], most) {
            Ok((ready, _)) => &*ready,
            // A signal handler ran; it signals the loop by a descriptor.
            Err(rustix::io::Errno::INTR) => &[],
            Err(error) => return Err(error.into()),
        };
        let mut sources = [None; MAX_EVENTS];
        for (source, event) in sources.iter_mut().zip(ready) {
            let data = event.data;
            *source = EventSource::from_number(data.u64());
        }
        Ok(sources.into_iter().flatten())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn event_sources_survive_encoding() {
        for source in [
            EventSource::Children,
            EventSource::Listener,
            EventSource::Connection(7),
            EventSource::Container(u32::MAX),
            EventSource::Exec(1),
            EventSource::Output(3, 0),
            EventSource::Output(3, 1),
            EventSource::Feed(9),
            EventSource::Input(9),
            EventSource::Attachment(2),
        ] {
            assert_eq!(EventSource::from_number(source.to_number()), Some(source));
        }
        assert_eq!(EventSource::from_number(u64::MAX), None);
    }
}
