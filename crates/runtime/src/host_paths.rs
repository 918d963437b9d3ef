//! Paths of the host that containers ask for. They may be on a file system that does not answer, such
//! as that of a server that is gone: whoever looks at one hangs, and nobody can end that.

use std::{
    collections::BTreeSet,
    fs,
    sync::{Arc, Mutex},
    time::Duration,
};

use rubelet_cri::CriErrorKind;

use crate::{
    engine::unbounded,
    events::lock,
    fault::{Fault, Outcome},
};

/// How long a path may take to answer. Disks and servers that are only busy need less.
const PATIENCE: Duration = Duration::from_secs(20);

/// What is known of such paths.
#[derive(Debug, Default)]
pub(crate) struct HostPaths {
    /// Those at which a look hangs. No other one is begun there: each would cost a thread.
    silent: Mutex<BTreeSet<String>>,
}

impl HostPaths {
    /// Looks at all `paths`, then does `work` on them.
    ///
    /// # Errors
    /// Those of `work`, and a path that does not answer.
    pub(crate) async fn look<T: Send + 'static>(
        self: &Arc<Self>,
        paths: Vec<String>,
        work: impl FnOnce() -> Outcome<T> + Send + 'static,
    ) -> Outcome<T> {
        if let Some(path) = paths.iter().find(|path| lock(&self.silent).contains(*path)) {
            return Err(silent(path));
        }
        let looks_at = Arc::new(Mutex::new(None));
        let (known, place) = (Arc::clone(self), Arc::clone(&looks_at));
        let looking = unbounded(move || {
            for path in paths {
                *lock(&place) = Some(path.clone());
                // What is wrong with it is found by the work.
                let _ = fs::metadata(&path);
                *lock(&place) = None;
                lock(&known.silent).remove(&path);
            }
            work()
        });
        if let Ok(done) = tokio::time::timeout(PATIENCE, looking).await {
            return done;
        }
        let looks_at = lock(&looks_at);
        match &*looks_at {
            Some(path) => {
                lock(&self.silent).insert(path.clone());
                Err(silent(path))
            }
            None => Err(deadline(format!(
                "looking at what the container asks for takes more than {} s",
                PATIENCE.as_secs()
            ))),
        }
    }
}

fn silent(path: &str) -> Fault {
    deadline(format!(
        "the file system of {path} does not answer: {} s were not enough to look at it. Perhaps its \
         server is gone; mount it anew, or unmount it with `umount -l`",
        PATIENCE.as_secs()
    ))
}

fn deadline(message: String) -> Fault {
    Fault::new(CriErrorKind::DeadlineExceeded(PATIENCE), message)
}
