//! Host paths that containers request. They may be on a file system that does not respond, such as
//! an NFS mount whose server is down: stat(2) then hangs in uninterruptible sleep.

use std::{collections::BTreeSet, fs, sync::Arc, time::Duration};

use parking_lot::Mutex;
use rubelet_cri::CriErrorKind;

use crate::{
    blocking::unbounded,
    error::{Result, RuntimeError},
};

/// Timeout for the lookup of a path. Disks and servers that are only busy take less.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(20);

/// The paths on file systems that do not respond.
#[derive(Debug, Default)]
pub(crate) struct HostPaths {
    /// Paths with a lookup that hangs. No second lookup is started there, because each would block
    /// a thread.
    unresponsive: Mutex<BTreeSet<String>>,
}

impl HostPaths {
    /// Looks up all `paths`, then runs `work` on them.
    ///
    /// # Errors
    /// Those of `work`, and a path that does not respond.
    pub(crate) async fn with_lookup<T: Send + 'static>(
        self: &Arc<Self>,
        paths: Vec<String>,
        work: impl FnOnce() -> Result<T> + Send + 'static,
    ) -> Result<T> {
        if let Some(path) = paths
            .iter()
            .find(|path| self.unresponsive.lock().contains(*path))
        {
            return Err(not_responding(path));
        }
        let looks_at = Arc::new(Mutex::new(None));
        let (known, place) = (Arc::clone(self), Arc::clone(&looks_at));
        let looking = unbounded(move || {
            for path in paths {
                *place.lock() = Some(path.clone());
                // Errors other than a hang are reported by `work`.
                let _ = fs::metadata(&path);
                *place.lock() = None;
                // A lookup that hung has returned: the file system responds again.
                known.unresponsive.lock().remove(&path);
            }
            work()
        });
        if let Ok(done) = tokio::time::timeout(LOOKUP_TIMEOUT, looking).await {
            return done;
        }
        let looks_at = looks_at.lock();
        match &*looks_at {
            Some(path) => {
                // With `looks_at` locked: a lookup that returns now removes the path after this.
                self.unresponsive.lock().insert(path.clone());
                Err(not_responding(path))
            }
            None => Err(deadline(format!(
                "the lookup of the container's mounts and devices takes more than {} s",
                LOOKUP_TIMEOUT.as_secs()
            ))),
        }
    }
}

fn not_responding(path: &str) -> RuntimeError {
    deadline(format!(
        "the file system of {path} did not respond within {} s. Perhaps its \
         server is down; remount it, or unmount it with `umount -l`",
        LOOKUP_TIMEOUT.as_secs()
    ))
}

fn deadline(message: String) -> RuntimeError {
    RuntimeError::new(CriErrorKind::DeadlineExceeded(LOOKUP_TIMEOUT), message)
}
