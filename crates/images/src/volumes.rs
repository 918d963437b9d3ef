//! The volumes that an image declares: directories of a container, filled from the image.
//!
//! The content of a volume's path is untrusted. Layers are read through descriptors, as overlayfs
//! shows them, and never through a mount; symbolic links are resolved inside the image by their
//! text ([`MergedTree::resolve`]), so that the kernel follows none.

mod copy;
mod merged;
mod progress;
#[cfg(test)]
mod tests;
mod text;
mod threads;

use std::{
    fs, io,
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
    sync::Arc,
};

use merged::MergedEntry;
pub(crate) use merged::MergedTree;
use progress::CopyProgress;
pub use progress::VolumeCopy;
pub(crate) use threads::CopyThreads;

use crate::{
    ImageStore, StoreError,
    store::{IdMappings, blocking, disk_error, mapped},
};

impl ImageStore {
    /// Resolves the paths of volumes in the image of a prepared root file system, symbolic links
    /// inside the image: each path with its target.
    ///
    /// # Errors
    /// There is no such root file system, a target is not a directory or behind too many links, or
    /// the disk fails.
    pub async fn resolve_volumes(
        self: &Arc<Self>,
        container_id: &str,
        volumes: Vec<PathBuf>,
    ) -> Result<Vec<(PathBuf, PathBuf)>, StoreError> {
        let layers = self.rootfs(container_id)?.lower;
        blocking(move || {
            let tree = MergedTree::open(&layers)?;
            let resolved = volumes.into_iter().map(|volume| {
                let path = tree
                    .resolve(&volume)
                    .map_err(|source| failed(&volume, source))?;
                Ok((volume, path))
            });
            resolved.collect()
        })
        .await
    }

    /// Creates a directory for each of these paths, which [`Self::resolve_volumes`] returned, and
    /// fills it with the image's content there: the directories, in the same order. Content of a
    /// nested volume is only in that volume's directory. With `userns`, all files are owned by the
    /// host IDs of the user namespace.
    ///
    /// They are removed with the root file system. Copies have threads of their own, two at a time.
    /// If the returned future is dropped, the copy ends and leaves nothing.
    ///
    /// # Errors
    /// There is no such root file system, a path is not a directory, or the disk fails.
    pub async fn fill_volumes(
        self: &Arc<Self>,
        container_id: &str,
        volumes: Vec<PathBuf>,
        userns: Option<&IdMappings>,
    ) -> Result<Vec<PathBuf>, StoreError> {
        let layers = self.rootfs(container_id)?.lower;
        let root = self.directories().image_volumes(container_id);
        let userns = userns.cloned();
        let copied = self.copies().run(container_id, move |progress| {
            let filled = fill_all(&layers, &root, &volumes, userns.as_ref(), progress);
            if progress.is_cancelled() {
                // A concurrent cleanup may have run before the last file was written.
                let _ = fs::remove_dir_all(&root);
            }
            filled
        });
        match copied.await {
            Ok(filled) => filled,
            Err(source) => Err(StoreError::Disk {
                step: "start a thread for the volumes in",
                path: self.directories().image_volumes(container_id),
                source,
            }),
        }
    }

    /// The progress of the copy of a container's volumes; `None` if no copy runs.
    #[must_use]
    pub fn volume_copy(&self, container_id: &str) -> Option<VolumeCopy> {
        self.copies().progress(container_id)
    }
}

/// Blocks, for as long as the image wants.
fn fill_all(
    layers: &[PathBuf],
    root: &Path,
    volumes: &[PathBuf],
    userns: Option<&IdMappings>,
    progress: &CopyProgress,
) -> Result<Vec<PathBuf>, StoreError> {
    let owner = |uid, gid| match userns {
        None => (uid, gid),
        Some(ids) => (mapped(uid, &ids.uids), mapped(gid, &ids.gids)),
    };
    private_dir(root)?;
    let tree = MergedTree::open(layers)?;
    let mut made = Vec::with_capacity(volumes.len());
    for (number, volume) in volumes.iter().enumerate() {
        let dir = root.join(number.to_string());
        private_dir(&dir)?;
        let inner: Vec<&Path> = volumes
            .iter()
            .filter(|other| *other != volume)
            .filter_map(|other| other.strip_prefix(volume).ok())
            .collect();
        let filled = match tree.find(volume) {
            Ok(MergedEntry::Dir(from)) => copy::fill(&tree, from, &dir, &owner, &inner, progress),
            Ok(MergedEntry::Nothing) => copy::empty(&dir, &owner),
            Ok(_) => Err(io::ErrorKind::NotADirectory.into()),
            Err(error) => Err(error),
        };
        filled.map_err(|source| failed(volume, source))?;
        made.push(dir);
    }
    Ok(made)
}

fn private_dir(dir: &Path) -> Result<(), StoreError> {
    let made = fs::DirBuilder::new().mode(0o700).create(dir);
    made.map_err(disk_error("make", dir))
}

fn failed(volume: &Path, source: io::Error) -> StoreError {
    StoreError::Volume {
        path: volume.to_owned(),
        source,
    }
}
