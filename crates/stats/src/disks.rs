//! Disks: file systems of the node and of the runtime, and log files.

use std::{collections::HashMap, path::PathBuf, sync::Arc};

use rubelet_cri::{CriError, ImageService, v1};
use rubelet_node_state::clock::Clock;
use tokio::task::spawn_blocking;

use crate::{filesystem, sample::FsSample, target::PodTarget};

/// What was read of disks.
#[derive(Debug, Clone, Default)]
pub(crate) struct DiskReadings {
    /// The file system of the writable layers.
    pub(crate) layers: Option<FsSample>,
    /// The file system of the logs.
    pub(crate) logs: Option<FsSample>,
    /// Bytes and inodes of log files, by the identifier of their container.
    pub(crate) log_files: HashMap<Arc<str>, (u64, u64)>,
}

/// File systems of the runtime.
#[derive(Debug, Clone, Default)]
pub(crate) struct RuntimeDisks {
    /// The file system of the images, with what they use.
    pub(crate) image: Option<FsSample>,
    /// The file system of the writable layers; `None` if the runtime does not name one.
    pub(crate) container: Option<FsSample>,
    /// The block device of the writable layers.
    pub(crate) device: Option<Box<str>>,
}

/// Reads the file systems that the runtime names.
pub(crate) async fn of_runtime(
    images: Arc<dyn ImageService>,
    clock: Clock,
) -> Result<RuntimeDisks, CriError> {
    let found = images.image_fs_info(v1::ImageFsInfoRequest {}).await?;
    let image = found.image_filesystems.into_iter().next();
    let container = found.container_filesystems.into_iter().next();
    let read = spawn_blocking(move || {
        let mountpoint = |usage: &v1::FilesystemUsage| {
            let id = usage.fs_id.as_ref()?;
            Some(PathBuf::from(&id.mountpoint))
        };
        let read = |usage: &v1::FilesystemUsage| {
            let whole = filesystem::read(&mountpoint(usage)?, clock.now()).ok()?;
            // The inodes are those of the whole, as in the kubelet.
            let used = usage.used_bytes.map(|used| used.value);
            Some(whole.part(used, whole.inodes_used))
        };
        let layers = container.as_ref().or(image.as_ref()).and_then(mountpoint);
        RuntimeDisks {
            image: image.as_ref().and_then(read),
            container: container.as_ref().and_then(read),
            device: layers.and_then(|path| filesystem::device(&path)),
        }
    });
    // A panic is a bug, and costs these numbers.
    Ok(read.await.unwrap_or_default())
}

/// Reads the sizes of the log files of containers. Blocks.
pub(crate) fn log_files(targets: &[PodTarget]) -> HashMap<Arc<str>, (u64, u64)> {
    let containers = targets.iter().flat_map(|pod| &pod.containers);
    containers
        .filter_map(|container| {
            let files = filesystem::files_in(&container.logs)?;
            Some((Arc::clone(&container.id), files))
        })
        .collect()
}
