//! Host paths that containers request. They may be on a file system that does not answer, such as
//! an NFS mount whose server is down: stat(2) then hangs in uninterruptible sleep.

use std::{collections::BTreeSet, fs, sync::Arc, time::Duration};

use parking_lot::Mutex;
use rubelet_cri::CriErrorKind;

use crate::{
    blocking::unbounded,
    error::{Result, RuntimeError},
};

/// How long a lookup of a path may take. Disks and servers that are only busy take less.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(20);

/// The paths that do not answer.
#[derive(Debug, Default)]
pub(crate) struct HostPaths {
    /// Paths with a lookup that hangs. No second lookup is started there, because each would block
    /// a thread.
    silent: Mutex<BTreeSet<String>>,
}

impl HostPaths {
    /// Looks up all `paths`, then runs `work` on them.
    ///
    /// # Errors
    /// Those of `work`, and a path that does not answer.
    pub(crate) async fn look<T: Send + 'static>(
        self: &Arc<Self>,
        paths: Vec<String>,
        work: impl FnOnce() -> Result<T> + Send + 'static,
    ) -> Result<T> {
        if let Some(path) = paths.iter().find(|path| self.silent.lock().contains(*path)) {
            return Err(silent(path));
        }
        let looks_at = Arc::new(Mutex::new(None));
        let (known, place) = (Arc::clone(self), Arc::clone(&looks_at));
        let looking = unbounded(move || {
            for path in paths {
                *place.lock() = Some(path.clone());
                // Errors other than a hang are reported by `work`.
                let _ = fs::metadata(&path);
                *place.lock() = None;
                // A lookup that hung has returned: the file system answers again.
                known.silent.lock().remove(&path);
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
                self.silent.lock().insert(path.clone());
                Err(silent(path))
            }
            None => Err(deadline(format!(
                "the lookup of the container's mounts and devices takes more than {} s",
                LOOKUP_TIMEOUT.as_secs()
            ))),
        }
    }
}

fn silent(path: &str) -> RuntimeError {
    deadline(format!(
        "the file system of {path} did not answer within {} s. Perhaps its \
         server is down; remount it, or unmount it with `umount -l`",
        LOOKUP_TIMEOUT.as_secs()
    ))
}

fn deadline(message: String) -> RuntimeError {
    RuntimeError::new(CriErrorKind::DeadlineExceeded(LOOKUP_TIMEOUT), message)
}
