//! An instance that is removed when a value is dropped.

use std::ops::Deref;

use anyhow::Result;

use super::Scratch;
use super::lock::HostLock;
use crate::{cleanup, report};

/// An instance without anything that has to be stopped before it is removed.
#[derive(Debug)]
pub struct ScratchGuard(Scratch);

impl ScratchGuard {
    /// Creates an instance.
    ///
    /// # Errors
    /// As [`Scratch::create`].
    pub fn create() -> Result<Self> {
        Scratch::create(&HostLock::take()?).map(Self)
    }

    /// Creates an instance in memory, see [`in_memory`](super::in_memory).
    ///
    /// # Errors
    /// As [`Scratch::create`].
    pub fn create_in_memory() -> Result<Self> {
        Scratch::create_at(&HostLock::take()?, true).map(Self)
    }
}

impl Deref for ScratchGuard {
    type Target = Scratch;

    fn deref(&self) -> &Scratch {
        &self.0
    }
}

impl Drop for ScratchGuard {
    fn drop(&mut self) {
        let removed = HostLock::take().and_then(|lock| cleanup::remove(&self.0, &lock));
        if let Err(error) = removed {
            report::say(&format!("{error:#}"));
        }
    }
}
