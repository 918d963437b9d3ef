//! How far the copy of a container's volumes is, and whether anybody still waits for it.

use std::{
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    time::Duration,
};

/// A copy of the volumes of an image that is not complete yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VolumeCopy {
    /// Since it was asked for.
    pub elapsed: Duration,
    /// False while it waits for other copies.
    pub begun: bool,
    /// Files that are complete; no directories.
    pub files: u64,
    /// Bytes of content, without holes.
    pub bytes: u64,
}

/// Shared by a copy and by those who wait for it.
#[derive(Debug, Default)]
pub(crate) struct CopyProgress {
    cancelled: AtomicBool,
    begun: AtomicBool,
    files: AtomicU64,
    bytes: AtomicU64,
}

impl CopyProgress {
    /// Tells the copy that nobody waits for it any more.
    pub(super) fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }

    /// Whether nobody waits for the copy any more.
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
