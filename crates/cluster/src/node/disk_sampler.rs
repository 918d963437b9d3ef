//! Measures the disks that the status of the node describes, without ever waiting for a file system that
//! hangs. Shortages are the eviction task's.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use rubelet_host::usage;
use tokio::{
    task::{JoinHandle, spawn_blocking},
    time::timeout,
};
use tracing::debug;

/// Timeout of a measurement; after it the previous values are used.
const PATIENCE: Duration = Duration::from_secs(2);

/// Sizes of file systems in bytes. `None`: could not be measured.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct DiskCapacities {
    /// The file system of volumes and logs.
    pub(super) nodefs: Option<u64>,
    /// That of images.
    pub(super) imagefs: Option<u64>,
}

/// Measures the disks.
#[derive(Debug)]
pub(super) struct DiskSampler {
    nodefs: Arc<Path>,
    last: DiskCapacities,
    /// A measurement that takes long. No second one is started beside it.
    running: Option<JoinHandle<DiskCapacities>>,
}

impl DiskSampler {
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
    pub(super) fn last(&self) -> DiskCapacities {
        self.last
    }

    /// Measures again.
    pub(super) async fn measure(&mut self, imagefs: Option<Arc<Path>>) -> DiskCapacities {
        let nodefs = Arc::clone(&self.nodefs);
        let running = self
            .running
            .get_or_insert_with(|| spawn_blocking(move || look(&nodefs, imagefs.as_deref())));
        match timeout(PATIENCE, &mut *running).await {
            Ok(measured) => {
                self.running = None;
                if let Ok(disks) = measured {
                    self.last = disks;
                }
            }
            Err(_) => debug!("Reading file system usage takes too long; using the previous values"),
        }
        self.last
    }
}

/// Reads the capacities; those that can't be read are omitted.
fn look(nodefs: &Path, imagefs: Option<&Path>) -> DiskCapacities {
    let of = |path: &Path| {
        usage::file_system(path)
            .ok()
            .map(|disk| disk.bytes.capacity)
    };
    DiskCapacities {
        nodefs: of(nodefs),
        imagefs: imagefs.and_then(of),
    }
}
