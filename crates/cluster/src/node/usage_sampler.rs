//! Measures memory, disks and processes without ever waiting for a file system that hangs.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use rubelet_host::usage::{self, FileSystemUsage, Usage};
use rubelet_node_plan::node_status::pressure::{FileSystem, Level, Levels};
use tokio::{
    task::{JoinHandle, spawn_blocking},
    time::timeout,
};
use tracing::debug;

/// How long a measurement may take before the previous one is used again.
const PATIENCE: Duration = Duration::from_secs(2);

/// Measures the machine.
#[derive(Debug)]
pub(super) struct UsageSampler {
    nodefs: Arc<Path>,
    last: Levels,
    /// A measurement that takes long. No second one is started beside it.
    running: Option<JoinHandle<Levels>>,
}

impl UsageSampler {
    /// Measures once, while the caller waits: the agent starts.
    pub(super) fn new(nodefs: PathBuf) -> Self {
        let nodefs: Arc<Path> = nodefs.into();
        Self {
            last: look(&nodefs, None),
            nodefs,
            running: None,
        }
    }

    /// The last measurement.
    pub(super) fn last(&self) -> Levels {
        self.last
    }

    /// Measures again.
    pub(super) async fn levels(&mut self, imagefs: Option<Arc<Path>>) -> Levels {
        let nodefs = Arc::clone(&self.nodefs);
        let running = self
            .running
            .get_or_insert_with(|| spawn_blocking(move || look(&nodefs, imagefs.as_deref())));
        match timeout(PATIENCE, &mut *running).await {
            Ok(measured) => {
                self.running = None;
                if let Ok(levels) = measured {
                    self.last = levels;
                }
            }
            Err(_) => debug!("Reading file system usage takes too long; using the previous values"),
        }
        self.last
    }
}

/// What can't be measured is left out.
fn look(nodefs: &Path, imagefs: Option<&Path>) -> Levels {
    let root = Path::new("/");
    let of = |path: &Path| usage::file_system(path).ok().map(file_system);
    Levels {
        memory: usage::memory(root).ok().map(level),
        nodefs: of(nodefs),
        imagefs: imagefs.and_then(of),
        pids: usage::pids(root).ok().map(level),
    }
}

fn level(usage: Usage) -> Level {
    Level {
        available: usage.available,
        capacity: usage.capacity,
    }
}

fn file_system(usage: FileSystemUsage) -> FileSystem {
    FileSystem {
        bytes: level(usage.bytes),
        inodes: level(usage.inodes),
    }
}
