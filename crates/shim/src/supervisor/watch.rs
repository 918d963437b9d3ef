//! What the loop waits for.

use std::{
    io,
    mem::MaybeUninit,
    os::fd::{AsFd, OwnedFd},
};

use rustix::event::{Timespec, epoll};

/// What a descriptor that became ready belongs to. Numbers of connections, containers and processes
/// are never used twice, so that an event that comes late hits nobody.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    /// A child has ended.
    Children,
    /// Somebody connects.
    Listener,
    /// An agent says something, or can be talked to again.
    Connection(u32),
    /// The init of a container reports.
    Container(u32),
    /// A process that joins a container reports.
    Exec(u32),
    /// A container wrote to an output: 0 and 1 for standard output and error.
    Output(u32, usize),
    /// There is input for a container.
    Feed(u32),
    /// A container can take input.
    Input(u32),
}

impl Source {
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
            _ => return None,
        })
    }
}

/// What is waited for at a descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Interest {
    /// That it can be read.
    Read,
    /// That it can be written.
    Write,
    /// Both.
    Both,
}

impl Interest {
    fn flags(self) -> epoll::EventFlags {
        match self {
            Self::Read => epoll::EventFlags::IN,
            Self::Write => epoll::EventFlags::OUT,
            Self::Both => epoll::EventFlags::IN | epoll::EventFlags::OUT,
        }
    }
}

/// An epoll instance. Level-triggered: what was not dealt with comes again.
#[derive(Debug)]
pub(super) struct Watch {
    epoll: OwnedFd,
}

/// Most events of one round.
pub(super) const ROUND: usize = 16;

impl Watch {
    pub(super) fn new() -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        Ok(Self { epoll })
    }

    /// Waits for a descriptor from now on, until [`Self::remove`]. Closing it is not enough: a
    /// child that was forked meanwhile may hold a copy, and then it is reported for ever.
    pub(super) fn add(&self, fd: impl AsFd, source: Source, interest: Interest) -> io::Result<()> {
        let data = epoll::EventData::new_u64(source.to_number());
        epoll::add(&self.epoll, fd, data, interest.flags())?;
        Ok(())
    }

    /// Waits for something else at a descriptor.
    pub(super) fn change(
        &self,
        fd: impl AsFd,
        source: Source,
        interest: Interest,
    ) -> io::Result<()> {
        let data = epoll::EventData::new_u64(source.to_number());
        epoll::modify(&self.epoll, fd, data, interest.flags())?;
        Ok(())
    }

    /// Waits no more for a descriptor that stays open; one that isn't waited for is left alone.
    pub(super) fn remove(&self, fd: impl AsFd) {
        let _ = epoll::delete(&self.epoll, fd);
    }

    /// Waits until something is ready, `most` at the longest.
    pub(super) fn wait(
        &self,
        most: Option<&Timespec>,
    ) -> io::Result<impl Iterator<Item = Source> + use<>> {
        let mut events = [const { MaybeUninit::<epoll::Event>::uninit() }; ROUND];
        let ready = match epoll::wait(&self.epoll, &mut events[..], most) {
            Ok((ready, _)) => &*ready,
            // A signal's handler ran; what it has to tell is told by a descriptor.
            Err(rustix::io::Errno::INTR) => &[],
            Err(error) => return Err(error.into()),
        };
        let mut sources = [None; ROUND];
        for (source, event) in sources.iter_mut().zip(ready) {
            let data = event.data;
            *source = Source::from_number(data.u64());
        }
        Ok(sources.into_iter().flatten())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_comes_back_as_itself() {
        for source in [
            Source::Children,
            Source::Listener,
            Source::Connection(7),
            Source::Container(u32::MAX),
            Source::Exec(1),
            Source::Output(3, 0),
            Source::Output(3, 1),
            Source::Feed(9),
            Source::Input(9),
        ] {
            assert_eq!(Source::from_number(source.to_number()), Some(source));
        }
        assert_eq!(Source::from_number(u64::MAX), None);
    }
}
