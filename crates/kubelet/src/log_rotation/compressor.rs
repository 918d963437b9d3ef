//! Compresses rotated logs in the background: compression takes much longer than a rotation, and
//! must not delay the next one.

use std::{
    collections::HashSet,
    path::{Path, PathBuf},
    sync::Arc,
};

use parking_lot::Mutex;
use rubelet_logs::rotation;
use tokio::{sync::Semaphore, task::spawn_blocking};
use tracing::warn;

/// Maximum number of logs that are compressed at the same time: each occupies one of the few
/// threads for files of pods.
const MOST_AT_ONCE: usize = 4;

/// Logs that wait for compression. Dropping it forgets them: the next rotation finds them again.
#[derive(Debug)]
pub(super) struct Compressor {
    permits: Arc<Semaphore>,
    /// Logs that wait, or are being compressed.
    queued: Arc<Mutex<HashSet<PathBuf>>>,
}

impl Compressor {
    pub(super) fn new(workers: usize) -> Self {
        Self {
            permits: Arc::new(Semaphore::new(workers.clamp(1, MOST_AT_ONCE))),
            queued: Arc::default(),
        }
    }

    /// Compresses the rotated files of a log when a permit is free.
    pub(super) fn compress(&self, log: &Path) {
        if !self.queued.lock().insert(log.to_owned()) {
            // Files that were rotated meanwhile are compressed after the next rotation at the
            // latest.
            return;
        }
        let (permits, queued) = (Arc::clone(&self.permits), Arc::clone(&self.queued));
        let log = log.to_owned();
        tokio::spawn(async move {
            // The semaphore is never closed.
            let _permit = permits.acquire().await.ok();
            let path = log.clone();
            let _ended = spawn_blocking(move || compress(&path)).await;
            queued.lock().remove(&log);
        });
    }
}

/// Compresses the rotated files of a log that are not compressed yet.
fn compress(path: &Path) {
    if let Err(error) = rotation::compress(path) {
        warn!(log = %path.display(), %error, "Failed to compress rotated log, keeping it uncompressed");
    }
}

#[cfg(test)]
mod tests {
    use tokio::task::yield_now;

    use super::*;

    #[tokio::test]
    async fn slow_compression_holds_up_no_rotation() {
        let compressor = Compressor::new(usize::MAX);
        let most = u32::try_from(MOST_AT_ONCE).unwrap();
        let busy = compressor.permits.try_acquire_many(most).unwrap();
        assert_eq!(compressor.permits.available_permits(), 0, "all work");
        let dir = tempfile::tempdir().unwrap();
        // `compress` does not wait.
        for number in 0..3 * MOST_AT_ONCE {
            compressor.compress(&dir.path().join(number.to_string()));
        }
        yield_now().await;
        assert_eq!(compressor.queued.lock().len(), 3 * MOST_AT_ONCE);
        drop(busy);
        while !compressor.queued.lock().is_empty() {
            yield_now().await;
        }
    }
}
