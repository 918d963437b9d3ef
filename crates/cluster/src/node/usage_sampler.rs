//! Measures memory, disks and processes without ever waiting for a file system that hangs.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use rubelet_host::usage::{self, FileSystemUsage, Usage};
use rubelet_node_plan::eviction::{FileSystem, ResourceLevel, ResourceLevels};
use tokio::{
    task::{JoinHandle, spawn_blocking},
    time::timeout,
};
use tracing::debug;

/// Timeout of a measurement; after it the previous values are used.
const PATIENCE: Duration = Duration::from_secs(2);

/// Measures the machine.
#[derive(Debug)]
pub(super) struct UsageSampler {
    nodefs: Arc<Path>,
    last: ResourceLevels,
    /// A measurement that takes long. No second one is started beside it.
    running: Option<JoinHandle<ResourceLevels>>,
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
    pub(super) fn last(&self) -> ResourceLevels {
        self.last
    }

    /// Measures again.
    pub(super) async fn levels(&mut self, imagefs: Option<Arc<Path>>) -> ResourceLevels {
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

/// Reads the usage; values that can't be measured are omitted.
fn look(nodefs: &Path, imagefs: Option<&Path>) -> ResourceLevels {
    let root = Path::new("/");
    let of = |path: &Path| usage::file_system(path).ok().map(file_system);
    ResourceLevels {
        memory: usage::memory(root).ok().map(level),
        nodefs: of(nodefs),
        imagefs: imagefs.and_then(of),
        pids: usage::pids(root).ok().map(level),
        ..ResourceLevels::default()
    }
}

fn level(usage: Usage) -> ResourceLevel {
    ResourceLevel {
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
