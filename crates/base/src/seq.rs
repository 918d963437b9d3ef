//! Freshness as a sequence number of this process, never a wall clock.

use std::sync::atomic::{AtomicU64, Ordering};

/// A point in this process's order of causes and inspections. `Seq::ZERO` is before everything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Seq(u64);

impl Seq {
    /// Before every issued number.
    pub const ZERO: Self = Self(0);

    /// The number itself, for logs and tests.
    #[must_use]
    pub fn get(self) -> u64 {
        self.0
    }
}

/// Issues [`Seq`] numbers; each call returns a larger one than every call that happened before.
#[derive(Debug, Default)]
pub struct SeqSource(AtomicU64);

impl SeqSource {
    /// The next number.
    pub fn next(&self) -> Seq {
        Seq(self.0.fetch_add(1, Ordering::SeqCst) + 1)
    }
}
