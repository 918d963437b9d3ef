//! Disks: file systems of the node and of the runtime, and log files.

use std::{collections::HashMap, path::PathBuf, sync::Arc};

use rubelet_cri::{CriError, ImageService, v1};
use rubelet_node_state::clock::Clock;
use tokio::task::spawn_blocking;

use crate::{
    filesystem,
    sample::{ContainerSample, FsSample, VolumeSample},
    target::PodTarget,
    volumes::VolumeReadings,
};

/// What was read of disks.
#[derive(Debug, Clone, Default)]
pub(crate) struct DiskReadings {
    /// The file system of the writable layers.
    pub(crate) layers: Option<FsSample>,
    /// The file system of the logs.
    pub(crate) logs: Option<FsSample>,
    /// Bytes and inodes of log files, by the identifier of their container.
    pub(crate) log_files: HashMap<Arc<str>, (u64, u64)>,
    /// Bytes and inodes of other files of pods, by UID.
    pub(crate) pod_files: HashMap<Arc<str>, (u64, u64)>,
    /// The file system of the root directory.
    pub(crate) root: Option<FsSample>,
    /// The volumes, where they are measured.
    pub(crate) volumes: VolumeReadings,
}

impl DiskReadings {
    /// The volumes of a pod that were measured.
    pub(crate) fn volumes(&self, pod: &PodTarget) -> Vec<VolumeSample> {
        let volumes = pod.volumes.iter();
        volumes
            .filter_map(|volume| {
                let key = (Arc::clone(&pod.uid), Arc::clone(&volume.name));
                Some(VolumeSample {
                    name: Arc::clone(&volume.name),
                    fs: *self.volumes.get(&key)?,
                    is_ephemeral: volume.is_ephemeral,
                })
            })
            .collect()
    }

    /// The local ephemeral storage of a pod (kubelet: `calcEphemeralStorage`); `None` if the file system
    /// of the root directory is not known.
    pub(crate) fn ephemeral_storage(
        &self,
        uid: &str,
        containers: &[ContainerSample],
        volumes: &[VolumeSample],
    ) -> Option<FsSample> {
        let root = self.root?;
        let containers = containers.iter();
        let of_containers = containers.flat_map(|one| [one.rootfs, one.logs]).flatten();
        let volumes = volumes.iter().filter(|one| one.is_ephemeral);
        let mut sum = root.part(None, None);
        for part in of_containers.chain(volumes.map(|one| one.fs)) {
            sum.at = sum.at.max(part.at);
            sum.used = plus(sum.used, part.used);
            sum.inodes_used = plus(sum.inodes_used, part.inodes_used);
        }
        if let Some((bytes, inodes)) = self.pod_files.get(uid) {
            sum.used = plus(sum.used, Some(*bytes));
            sum.inodes_used = plus(sum.inodes_used, Some(*inodes));
        }
        Some(sum)
    }
}

/// The sum of what is known.
fn plus(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.saturating_add(other)),
        (one, other) => one.or(other),
    }
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

/// Reads the sizes of the files in the log directories of pods, and of their `/etc/hosts`. Blocks.
pub(crate) fn pod_files(targets: &[PodTarget]) -> HashMap<Arc<str>, (u64, u64)> {
    let measured = targets.iter().filter(|pod| pod.etc_hosts.is_some());
    measured
        .map(|pod| {
            let logs = pod.containers.first().and_then(|one| one.logs.parent());
            let logs = logs.map_or((0, 0), filesystem::regular_files_in);
            let hosts = pod.etc_hosts.as_deref().and_then(filesystem::file);
            let (bytes, inodes) = hosts.unwrap_or_default();
            (Arc::clone(&pod.uid), (logs.0 + bytes, logs.1 + inodes))
        })
        .collect()
}

#[cfg(test)]
mod tests;
