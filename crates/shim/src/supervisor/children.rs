//! Reaps the shim's children and, as it is a subreaper, orphaned descendants.

use std::{collections::VecDeque, os::fd::OwnedFd};

use rustix::process::{WaitOptions, WaitStatus, wait};

use crate::runtime::ProcessExit;

/// Maximum stored exits of unknown processes.
const REMEMBERED: usize = 256;

/// The children of this process.
#[derive(Debug)]
pub(super) struct Children {
    /// Readable when a child has exited.
    pub(super) changed: OwnedFd,
    /// Exits of unknown processes. An external runtime may report the PID of a process only after
    /// it exited.
    unknown_exits: VecDeque<(i32, ProcessExit)>,
}

impl Children {
    pub(super) fn new(changed: OwnedFd) -> Self {
        Self {
            changed,
            unknown_exits: VecDeque::new(),
        }
    }

    /// Must be called before [`Self::reap`]: a child that exits in between sets it again, so none
    /// is missed.
    pub(super) fn clear(&self) {
        // EAGAIN is fine.
        let _ = rustix::io::read(&self.changed, &mut [0; 8]);
    }

    /// Reaps one child that has exited.
    pub(super) fn reap(&self) -> Option<(i32, ProcessExit)> {
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

    /// Stores the exit of an unknown process.
    pub(super) fn remember(&mut self, pid: i32, ended: ProcessExit) {
        if self.unknown_exits.len() == REMEMBERED {
            self.unknown_exits.pop_front();
        }
        self.unknown_exits.push_back((pid, ended));
    }

    /// The stored exit of a process that became known.
    pub(super) fn recall(&mut self, pid: i32) -> Option<ProcessExit> {
        let place = self
            .unknown_exits
            .iter()
            .position(|(known, _)| *known == pid)?;
        self.unknown_exits.remove(place).map(|(_, ended)| ended)
    }

    /// Drops all: no program is running that could report one.
    pub(super) fn forget(&mut self) {
        self.unknown_exits = VecDeque::new();
    }
}

fn ended(status: WaitStatus) -> Option<ProcessExit> {
    let by_itself = status.exit_status().map(ProcessExit::Exit);
    by_itself.or_else(|| status.terminating_signal().map(ProcessExit::Signal))
}
