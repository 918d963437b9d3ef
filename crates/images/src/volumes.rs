//! The volumes that an image declares: directories of a container's own, filled from the image.
//!
//! What is at a volume's path was made by a stranger. Layers are read through descriptors, as
//! overlayfs shows them, and never through a mount; symbolic links are resolved inside of the image
//! by their text ([`MergedTree::resolve`]), so that the kernel follows none.

mod copy;
mod merged;
#[cfg(test)]
mod tests;
mod text;

use std::{
    fs, io,
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
    sync::Arc,
};

use merged::Found;
pub(crate) use merged::MergedTree;

use crate::{
    ImageStore, StoreError,
    store::{Mappings, blocking, disk_error, mapped},
};

impl ImageStore {
    /// Where the paths of volumes lead in the image of a prepared root file system, symbolic links
    /// resolved inside of the image: each path with the one it leads to.
    ///
    /// # Errors
    /// There is no such root file system, a path leads to something that is no directory or through
    /// too many links, or the disk fails.
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

    /// Makes a directory for each of these paths, which [`Self::resolve_volumes`] gave, and fills it
    /// with what the image has there: the directories, in the same order. What belongs to a path
    /// below another is in that one's directory only. With `userns`, all is owned by the IDs that
    /// the user namespace has on the host.
    ///
    /// They go with the root file system.
    ///
    /// # Errors
    /// There is no such root file system, a path leads to something that is no directory, or the
    /// disk fails.
    pub async fn fill_volumes(
        self: &Arc<Self>,
        container_id: &str,
        volumes: Vec<PathBuf>,
        userns: Option<&Mappings>,
    ) -> Result<Vec<PathBuf>, StoreError> {
        let layers = self.rootfs(container_id)?.lower;
        let root = self.folders().image_volumes(container_id);
        let userns = userns.cloned();
        blocking(move || {
            let owner = |uid, gid| match &userns {
                None => (uid, gid),
                Some(ids) => (mapped(uid, &ids.uids), mapped(gid, &ids.gids)),
            };
            private_dir(&root)?;
            let tree = MergedTree::open(&layers)?;
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
                    Ok(Found::Dir(from)) => copy::fill(&tree, from, &dir, &owner, &inner),
                    Ok(Found::Nothing) => copy::empty(&dir, &owner),
                    Ok(_) => Err(io::ErrorKind::NotADirectory.into()),
                    Err(error) => Err(error),
                };
                filled.map_err(|source| failed(volume, source))?;
                made.push(dir);
            }
            Ok(made)
        })
        .await
    }
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
