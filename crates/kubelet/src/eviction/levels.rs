//! Measures memory, file systems and processes without waiting for a file system that hangs.

use std::{
    fs, io,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use rubelet_cgroup_plan::CgroupPath;
use rubelet_cri::{ImageService, v1};
use rubelet_host::{
    CgroupFs,
    cgroup::StatsScope,
    usage::{self, FileSystemUsage, Usage},
};
use rubelet_node_plan::eviction::{FileSystem, FileSystemLayout, ResourceLevel, ResourceLevels};
use rubelet_node_state::runtime_state::RuntimeState;
use tokio::{
    task::{JoinHandle, spawn_blocking},
    time::timeout,
};
use tracing::debug;

/// Longest wait for file systems. What one does not answer in this time is unknown.
const PATIENCE: Duration = Duration::from_secs(2);

/// The runtime's file systems; `None` while the runtime has not named them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RuntimeDirectories {
    /// Directory of the images.
    pub images: Option<PathBuf>,
    /// Directory of the writable layers, if the runtime names one.
    pub layers: Option<PathBuf>,
}

/// Longest wait for an answer of the runtime about its directories.
const RUNTIME_PATIENCE: Duration = Duration::from_secs(2);

impl RuntimeDirectories {
    /// Asks the runtime, until it has named a directory.
    pub(crate) async fn find(&mut self, images: &dyn ImageService, runtime: &RuntimeState) {
        if self.images.is_some() || !runtime.is_ready() {
            return;
        }
        let asked = images.image_fs_info(v1::ImageFsInfoRequest {});
        match timeout(RUNTIME_PATIENCE, asked).await {
            Ok(Ok(answer)) => {
                let first = |list: &[v1::FilesystemUsage]| -> Option<PathBuf> {
                    let path = &list.first()?.fs_id.as_ref()?.mountpoint;
                    (!path.is_empty()).then(|| path.into())
                };
                *self = Self {
                    images: first(&answer.image_filesystems),
                    layers: first(&answer.container_filesystems),
                };
            }
            Ok(Err(error)) => {
                debug!(%error, "Cannot get the image file system from the runtime");
            }
            // Memory is measured without the runtime, too.
            Err(_) => debug!("Getting the image file system from the runtime takes too long"),
        }
    }
}

/// Levels of file systems, and which of them are the same.
pub type FileSystemLevels = (ResourceLevels, FileSystemLayout);

/// Reads the levels of the node. Functions may block.
pub trait LevelSource: Send + Sync + 'static {
    /// Memory and processes, which are always answered at once.
    fn memory_and_pids(&self) -> ResourceLevels;

    /// The file systems of volumes, images and writable layers.
    fn file_systems(&self, directories: &RuntimeDirectories) -> FileSystemLevels;
}

/// The levels of this machine.
#[derive(Debug)]
pub struct MachineLevels {
    /// Directory of volumes: `--root-dir`.
    pub root: PathBuf,
    /// Its cgroups.
    pub cgroups: CgroupFs,
    /// The cgroups that may be that of all pods.
    pub kubepods: Vec<CgroupPath>,
}

impl MachineLevels {
    /// All memory outside the working set of the root cgroup, as the kubelet computes it: with
    /// version 2 that is the memory that is not free, without the inactive page cache.
    fn memory(&self) -> Option<ResourceLevel> {
        let mut level = usage::memory(Path::new("/")).ok().map(level)?;
        if let Some(memory) = self.cgroups.root_memory() {
            level.available = level.capacity.saturating_sub(memory.working_set);
        }
        Some(level)
    }

    /// What the limit of the cgroup of all pods leaves of their memory; `None` without a limit.
    fn allocatable_memory(&self) -> Option<ResourceLevel> {
        let mut stats = self
            .kubepods
            .iter()
            .filter_map(|path| self.cgroups.stats(path, StatsScope::Usage).ok());
        let memory = stats.next()?.memory?;
        Some(ResourceLevel {
            available: memory.available()?,
            capacity: memory.limit?,
        })
    }
}

impl LevelSource for MachineLevels {
    fn memory_and_pids(&self) -> ResourceLevels {
        let root = Path::new("/");
        ResourceLevels {
            memory: self.memory(),
            allocatable_memory: self.allocatable_memory(),
            pids: usage::pids(root).ok().map(level),
            ..ResourceLevels::default()
        }
    }

    fn file_systems(&self, directories: &RuntimeDirectories) -> FileSystemLevels {
        let of = |path: &Path| usage::file_system(path).ok().map(file_system);
        let layout = layout(&self.root, directories).unwrap_or_default();
        let layers = directories.layers.as_deref();
        let levels = ResourceLevels {
            nodefs: of(&self.root),
            imagefs: directories.images.as_deref().and_then(of),
            containerfs: layers
                .filter(|_| layout == FileSystemLayout::SplitImageFileSystem)
                .and_then(of),
            ..ResourceLevels::default()
        };
        (levels, layout)
    }
}

fn layout(root: &Path, directories: &RuntimeDirectories) -> io::Result<FileSystemLayout> {
    let device = |path: &Path| fs::metadata(path).map(|found| found.dev());
    let Some(images) = &directories.images else {
        return Ok(FileSystemLayout::Single);
    };
    let image_device = device(images)?;
    if image_device == device(root)? {
        return Ok(FileSystemLayout::Single);
    }
    match &directories.layers {
        Some(layers) if device(layers)? != image_device => {
            Ok(FileSystemLayout::SplitImageFileSystem)
        }
        _ => Ok(FileSystemLayout::ImageFileSystem),
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

/// Measures through a [`LevelSource`].
pub(crate) struct LevelSampler {
    source: Arc<dyn LevelSource>,
    /// A measurement of file systems that takes long. No second one is started beside it.
    running: Option<JoinHandle<FileSystemLevels>>,
}

impl LevelSampler {
    pub(crate) fn new(source: Arc<dyn LevelSource>) -> Self {
        Self {
            source,
            running: None,
        }
    }

    /// Measures now. The levels of file systems that do not respond are unknown.
    pub(super) async fn measure(&mut self, directories: &RuntimeDirectories) -> FileSystemLevels {
        let (disks, layout) = self.file_systems(directories).await;
        let source = Arc::clone(&self.source);
        let others = spawn_blocking(move || source.memory_and_pids()).await;
        let levels = ResourceLevels {
            nodefs: disks.nodefs,
            imagefs: disks.imagefs,
            containerfs: disks.containerfs,
            ..others.unwrap_or_default()
        };
        (levels, layout)
    }

    /// Measures the file systems. One that does not respond has an unknown level.
    pub(crate) async fn file_systems(
        &mut self,
        directories: &RuntimeDirectories,
    ) -> FileSystemLevels {
        let source = Arc::clone(&self.source);
        let of = directories.clone();
        let running = self
            .running
            .get_or_insert_with(|| spawn_blocking(move || source.file_systems(&of)));
        match timeout(PATIENCE, &mut *running).await {
            Ok(measured) => {
                self.running = None;
                // A join error means that the agent stops.
                measured.unwrap_or_default()
            }
            Err(_) => {
                debug!("Reading file system usage takes too long; their levels are unknown");
                FileSystemLevels::default()
            }
        }
    }
}
