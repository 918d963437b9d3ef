//! An instance that is removed when a value is dropped.

use std::ops::Deref;

use anyhow::Result;

use super::Scratch;
use super::lock::HostLock;
use crate::{cleanup, report};

/// An instance, whose processes are killed when it is removed.
#[derive(Debug)]
pub struct ScratchGuard {
    scratch: Scratch,
    removed: bool,
}

impl ScratchGuard {
    /// Creates an instance.
    ///
    /// # Errors
    /// As [`Scratch::create`].
    pub fn create() -> Result<Self> {
        Scratch::create(&HostLock::take()?).map(Self::of)
    }

    /// Creates an instance in memory, see [`in_memory`](super::in_memory).
    ///
    /// # Errors
    /// As [`Scratch::create`].
    pub fn create_in_memory() -> Result<Self> {
        Scratch::create_at(&HostLock::take()?, true).map(Self::of)
    }

    fn of(scratch: Scratch) -> Self {
        Self {
            scratch,
            removed: false,
        }
    }

    /// Removes everything of it now, and reports failures. Does nothing the second time.
    ///
    /// # Errors
    /// What could not be removed.
    pub fn remove(&mut self) -> Result<()> {
        if self.removed {
            return Ok(());
        }
        self.removed = true;
        cleanup::remove(&self.scratch, &HostLock::take()?)
    }
}

impl Deref for ScratchGuard {
    type Target = Scratch;

    fn deref(&self) -> &Scratch {
        &self.scratch
    }
}

impl Drop for ScratchGuard {
    fn drop(&mut self) {
        if let Err(error) = self.remove() {
            report::say(&format!("{error:#}"));
        }
    }
}
