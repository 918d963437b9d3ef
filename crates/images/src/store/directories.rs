//! The layout on disk.

use std::{
    fs, io,
    os::unix::fs::{DirBuilderExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
};

use rubelet_base::ErrorChain;

use crate::{Digest, ImageId, tree};

/// The directories of a store.
#[derive(Debug)]
pub(crate) struct Directories {
    root: PathBuf,
    next: AtomicU64,
}

/// Replaces the layers of images without content.
pub(super) const EMPTY: &str = "empty";

impl Directories {
    pub(super) fn new(root: &Path) -> Self {
        Self {
            root: root.to_owned(),
            next: AtomicU64::new(0),
        }
    }

    /// Creates missing directories.
    pub(super) fn make(&self) -> Result<(), (PathBuf, io::Error)> {
        for path in [
            self.root.clone(),
            self.images(),
            self.layers(),
            self.snapshots(),
            self.ingest(),
        ] {
            private(&path).map_err(|error| (path, error))?;
        }
        let empty = self.layers().join(EMPTY);
        open_directory(&empty).map_err(|error| (empty, error))
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    pub(super) fn images(&self) -> PathBuf {
        self.root.join("images")
    }

    pub(super) fn image(&self, id: &ImageId) -> PathBuf {
        let name = format!("{}.json", id.digest().file_name());
        self.images().join(name)
    }

    pub(super) fn lock(&self) -> PathBuf {
        self.images().join("lock")
    }

    pub(super) fn layers(&self) -> PathBuf {
        self.root.join("layers")
    }

    pub(super) fn layer(&self, diff_id: &Digest) -> PathBuf {
        self.layers().join(diff_id.file_name())
    }

    pub(super) fn layer_tree(&self, diff_id: &Digest) -> PathBuf {
        self.layer(diff_id).join("fs")
    }

    pub(super) fn snapshots(&self) -> PathBuf {
        self.root.join("snapshots")
    }

    pub(super) fn snapshot(&self, container_id: &str) -> PathBuf {
        self.snapshots().join(container_id)
    }

    /// The directories for the volumes that a container's image declares.
    pub(crate) fn image_volumes(&self, container_id: &str) -> PathBuf {
        self.snapshot(container_id).join("image-volumes")
    }

    pub(super) fn ingest(&self) -> PathBuf {
        self.root.join("ingest")
    }

    /// A new path in `ingest`. The directory is emptied when the store opens.
    pub(crate) fn unused(&self) -> PathBuf {
        loop {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            let path = self.ingest().join(number.to_string());
            // A leftover that could not be removed may exist.
            if fs::symlink_metadata(&path).is_err() {
                return path;
            }
        }
    }
}

/// Removes a path that was set aside.
pub(super) fn discard(trash: impl IntoIterator<Item = PathBuf>) {
    for path in trash {
        if let Err(error) = tree::remove(&path) {
            // The next start retries.
            tracing::warn!(path = %path.display(), error = %ErrorChain(&error), "Failed to remove a directory");
        }
    }
}

/// A directory that only root can access, with its parents.
fn private(path: &Path) -> io::Result<()> {
    let made = fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path);
    made?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o700))
}

/// The root directory of a container's files: the container sees its attributes.
pub(crate) fn open_directory(path: &Path) -> io::Result<()> {
    match fs::create_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        made => made?,
    }
    fs::set_permissions(path, fs::Permissions::from_mode(0o755))
}
