//! Reaps: the shim's own children and, since it is their reaper, what they leave behind.

use std::{collections::VecDeque, os::fd::OwnedFd};

use rustix::process::{WaitOptions, WaitStatus, wait};

use crate::runtime::Ended;

/// Strangers whose end is remembered.
const REMEMBERED: usize = 256;

/// The children of this process.
#[derive(Debug)]
pub(super) struct Children {
    /// Readable when one has ended.
    pub(super) changed: OwnedFd,
    /// Processes that nobody knew when they ended. A program that is being executed may tell of one
    /// only later.
    strangers: VecDeque<(i32, Ended)>,
}

impl Children {
    pub(super) fn new(changed: OwnedFd) -> Self {
        Self {
            changed,
            strangers: VecDeque::new(),
        }
    }

    /// To be called before [`Self::reap`], which then finds all that ended until now.
    pub(super) fn clear(&self) {
        // Nothing to read is as good.
        let _ = rustix::io::read(&self.changed, &mut [0; 8]);
    }

    /// Reaps one, if one has ended.
    pub(super) fn reap(&self) -> Option<(i32, Ended)> {
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) => {
                    if let Some(ended) = ended(status) {
                        return Some((pid.as_raw_nonzero().get(), ended));
                    }
                }
                Err(rustix::io::Errno::INTR) => {}
                Ok(None) | Err(_) => return None,
            }
        }
    }

    /// Remembers one that nobody knows.
    pub(super) fn remember(&mut self, pid: i32, ended: Ended) {
        if self.strangers.len() == REMEMBERED {
            self.strangers.pop_front();
        }
        self.strangers.push_back((pid, ended));
    }

    /// How a process ended that turned out to be known.
    pub(super) fn recall(&mut self, pid: i32) -> Option<Ended> {
        let place = self.strangers.iter().position(|(known, _)| *known == pid)?;
        self.strangers.remove(place).map(|(_, ended)| ended)
    }

    /// Forgets all: nobody is going to tell of one.
    pub(super) fn forget(&mut self) {
        self.strangers = VecDeque::new();
    }
}

fn ended(status: WaitStatus) -> Option<Ended> {
    let by_itself = status.exit_status().map(Ended::Exit);
    by_itself.or_else(|| status.terminating_signal().map(Ended::Signal))
}
