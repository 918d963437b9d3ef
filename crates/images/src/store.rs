//! Images and layers on disk, their users, and the removal of unused ones.

mod commit;
mod directories;
mod implicit_dirs;
mod open;
mod records;
mod remove;
mod rootfs;
mod state;

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use parking_lot::{Mutex, MutexGuard};
use rubelet_host::lock::FileLock;
pub use rubelet_oci::IdMappings;
use rubelet_store::{Loaded, Record};

pub(crate) use self::commit::{LayerLease, NewImage};
pub(crate) use self::directories::open_directory;
pub(crate) use self::records::LayerSource;
pub(crate) use self::rootfs::mapped;
use self::{directories::Directories, records::ImageRecord, state::StoreState};
use crate::{
    DiskUsage, Image, ImageDetails, ImageSettings, StoreError, active_pulls::ActivePulls,
    volumes::CopyThreads,
};

/// All images of this node. One process opens a root at a time.
pub struct ImageStore {
    directories: Directories,
    settings: ImageSettings,
    /// The pinned names of the settings, normalized.
    pinned: Vec<String>,
    state: Mutex<StoreState>,
    /// Held while the disk and `state` change together. Taken before `state`, and only by threads
    /// that may block.
    disk: Mutex<()>,
    pub(crate) pulls: ActivePulls,
    copies: CopyThreads,
    /// Excludes other processes.
    _lock: FileLock,
}

/// The directories of a container's root file system, for overlayfs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RootfsLayers {
    /// The image's layers, the topmost first. Never empty. Owned as in the image: if the container
    /// has a user namespace, they must be mounted with its mapping.
    pub lower: Vec<PathBuf>,
    /// The container's writable layer.
    pub upper: PathBuf,
    /// Overlayfs's work directory, on the same file system.
    pub work: PathBuf,
}

/// Disk usage of images and root file systems.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageFsInfo {
    /// The directory that contains them.
    pub mountpoint: PathBuf,
    /// Layers of images, each counted once.
    pub images: DiskUsage,
    /// Data that containers wrote, as far as it was measured.
    pub containers: DiskUsage,
}

/// The result of a removal.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RemovalResult {
    /// Removed names.
    pub untagged: Vec<String>,
    /// The removed image; `None` if it has other names, or did not exist.
    pub image: Option<crate::ImageId>,
}

impl ImageStore {
    /// All images, by identifier.
    #[must_use]
    pub fn list(&self) -> Vec<Arc<Image>> {
        self.state().images.values().cloned().collect()
    }

    /// The image with this name, identifier, digest, or unique prefix of an identifier. Short names
    /// are normalized.
    #[must_use]
    pub fn find(&self, image: &str) -> Option<Arc<Image>> {
        self.state().find(image).cloned()
    }

    /// The details of an image.
    ///
    /// # Errors
    /// It does not exist, or its record can't be read.
    pub async fn inspect(self: &Arc<Self>, image: &str) -> Result<ImageDetails, StoreError> {
        let no_image = || StoreError::NoImage(image.to_owned());
        let image = self.find(image).ok_or_else(no_image)?;
        let (store, id) = (Arc::clone(self), image.id.clone());
        let record = blocking(move || store.record(&id)).await?;
        let record = record.ok_or_else(no_image)?;
        Ok(ImageDetails {
            image,
            config_file: record.config_file,
            manifest: record.manifest,
        })
    }

    /// Disk usage, from memory.
    #[must_use]
    pub fn fs_info(&self) -> ImageFsInfo {
        let state = self.state();
        let (mut images, mut containers) = (DiskUsage::default(), DiskUsage::default());
        for layer in state.layers.values() {
            images += layer.record.usage;
        }
        for snapshot in state.snapshots.values() {
            containers += snapshot
                .measured
                .map(|(_, usage)| usage)
                .unwrap_or_default();
        }
        ImageFsInfo {
            mountpoint: self.directories.root().to_owned(),
            images,
            containers,
        }
    }

    /// The settings it was opened with.
    #[must_use]
    pub fn settings(&self) -> &ImageSettings {
        &self.settings
    }

    pub(crate) fn directories(&self) -> &Directories {
        &self.directories
    }

    fn state(&self) -> MutexGuard<'_, StoreState> {
        self.state.lock()
    }

    fn disk(&self) -> MutexGuard<'_, ()> {
        self.disk.lock()
    }

    /// The threads that fill volumes.
    pub(crate) fn copies(&self) -> &CopyThreads {
        &self.copies
    }

    /// The record of an image, from the disk: memory only holds what is always needed.
    fn record(&self, id: &crate::ImageId) -> Result<Option<ImageRecord>, StoreError> {
        let path = self.directories.image(id);
        let record = Record::<ImageRecord>::at(&path);
        match record.load() {
            Ok(Loaded::Valid(record)) => Ok(Some(record)),
            Ok(Loaded::Missing) => Ok(None),
            Ok(Loaded::Quarantined { moved_to, why }) => {
                tracing::warn!(moved_to = %moved_to.display(), %why, "Image record is corrupt, moved away");
                Ok(None)
            }
            Err(error) => Err(StoreError::Disk {
                step: "read",
                path,
                source: io::Error::other(error),
            }),
        }
    }
}

/// Runs blocking work in the blocking pool.
pub(crate) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // Only a runtime that is shutting down does not run it.
            Err(_) => std::future::pending().await,
        },
    }
}

pub(crate) fn disk_error<'a>(
    step: &'static str,
    path: &'a Path,
) -> impl FnOnce(io::Error) -> StoreError + use<'a> {
    move |source| StoreError::Disk {
        step,
        path: path.to_owned(),
        source,
    }
}

#[cfg(test)]
mod tests;
