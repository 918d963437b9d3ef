//! What is on disk, who uses it, and what nobody uses any more.

mod commit;
mod folders;
mod open;
mod records;
mod remove;
mod rootfs;
mod seam;
mod state;

use std::{
    io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use rubelet_host::lock::FileLock;
use rubelet_oci::IdMapping;
use rubelet_store::{Loaded, Record};
use serde::{Deserialize, Serialize};

pub(crate) use self::commit::{Arrival, LayerHold};
pub(crate) use self::folders::open_folder;
pub(crate) use self::records::LayerSource;
pub(crate) use self::rootfs::mapped;
use self::{folders::Folders, records::ImageRecord, state::State};
use crate::{Image, ImageDetails, ImageSettings, StoreError, pull::Pulls};

/// All images of this node. One process opens a root at a time.
pub struct ImageStore {
    folders: Folders,
    settings: ImageSettings,
    /// The settings' names of pinned images, spelled out.
    pinned: Vec<String>,
    state: Mutex<State>,
    /// Held by whoever changes what is on disk together with what is known of it. Taken before
    /// `state`, and by threads that may block only.
    disk: Mutex<()>,
    pub(crate) pulls: Pulls,
    /// Keeps other processes away.
    _lock: FileLock,
}

/// The IDs of a user namespace on the host.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Mappings {
    /// Users.
    pub uids: Vec<IdMapping>,
    /// Groups.
    pub gids: Vec<IdMapping>,
}

/// The folders of a container's root file system, for overlayfs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RootfsLayers {
    /// The image's layers, the topmost first. Never empty. Owned as in the image: where the
    /// container has a user namespace, they must be mounted with its mapping.
    pub lower: Vec<PathBuf>,
    /// What the container writes.
    pub upper: PathBuf,
    /// Overlayfs's own, on the same file system.
    pub work: PathBuf,
}

/// Space on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Usage {
    /// Bytes of blocks.
    pub bytes: u64,
    /// Files, folders and the like.
    pub inodes: u64,
}

impl std::ops::AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        self.bytes += other.bytes;
        self.inodes += other.inodes;
    }
}

/// What images and root file systems take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageFsInfo {
    /// The folder that all is in.
    pub mountpoint: PathBuf,
    /// Layers of images, each counted once.
    pub images: Usage,
    /// What containers wrote, as far as it was measured.
    pub containers: Usage,
}

/// What a removal did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Removed {
    /// Names that are gone.
    pub untagged: Vec<String>,
    /// The image that is gone; none while it has other names, or was not there.
    pub image: Option<crate::ImageId>,
}

impl ImageStore {
    /// All images, by identifier.
    #[must_use]
    pub fn list(&self) -> Vec<Arc<Image>> {
        self.state().images.values().cloned().collect()
    }

    /// The image with this name, identifier, digest, or beginning of an identifier that only one
    /// image has. Short names are spelled out.
    #[must_use]
    pub fn find(&self, image: &str) -> Option<Arc<Image>> {
        self.state().find(image).cloned()
    }

    /// All that is known of an image.
    ///
    /// # Errors
    /// There is none, or its record can't be read.
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

    /// What is in use. Walks nothing.
    #[must_use]
    pub fn fs_info(&self) -> ImageFsInfo {
        let state = self.state();
        let (mut images, mut containers) = (Usage::default(), Usage::default());
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
            mountpoint: self.folders.root().to_owned(),
            images,
            containers,
        }
    }

    /// The settings it was opened with.
    #[must_use]
    pub fn settings(&self) -> &ImageSettings {
        &self.settings
    }

    pub(crate) fn folders(&self) -> &Folders {
        &self.folders
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn disk(&self) -> MutexGuard<'_, ()> {
        self.disk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The record of an image, from the disk: in memory is only what is needed at all times.
    fn record(&self, id: &crate::ImageId) -> Result<Option<ImageRecord>, StoreError> {
        let path = self.folders.image(id);
        let record = Record::<ImageRecord>::at(&path);
        match record.load() {
            Ok(Loaded::Valid(record)) => Ok(Some(record)),
            Ok(Loaded::Missing) => Ok(None),
            Ok(Loaded::Quarantined { moved_to, why }) => {
                tracing::warn!(moved_to = %moved_to.display(), %why, "the record of an image is damaged");
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

/// Runs what blocks where it may.
pub(crate) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // Only a runtime that is shut down does not run it.
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
