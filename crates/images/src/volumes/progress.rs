//! The progress and cancellation of the copy of a container's volumes.

use std::{
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    time::Duration,
};

/// A copy of the volumes of an image that is not complete yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VolumeCopy {
    /// Time since it was requested.
    pub elapsed: Duration,
    /// False while it waits for other copies.
    pub begun: bool,
    /// Files that are complete; no directories.
    pub files: u64,
    /// Bytes of content, without holes.
    pub bytes: u64,
}

/// Shared by a copy and its waiters.
#[derive(Debug, Default)]
pub(crate) struct CopyProgress {
    cancelled: AtomicBool,
    begun: AtomicBool,
    files: AtomicU64,
    bytes: AtomicU64,
}

impl CopyProgress {
    /// Cancels the copy.
    pub(super) fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }

    /// Reports whether the copy was cancelled.
    pub(super) fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }

    pub(super) fn begin(&self) {
        self.begun.store(true, Ordering::Relaxed);
    }

    pub(super) fn add_file(&self) {
        self.files.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn add_bytes(&self, count: u64) {
        self.bytes.fetch_add(count, Ordering::Relaxed);
    }

    pub(super) fn after(&self, elapsed: Duration) -> VolumeCopy {
        VolumeCopy {
            elapsed,
            begun: self.begun.load(Ordering::Relaxed),
            files: self.files.load(Ordering::Relaxed),
            bytes: self.bytes.load(Ordering::Relaxed),
        }
    }
}
