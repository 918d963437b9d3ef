//! Opens a store: loads complete layers and images, and removes incomplete ones.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use parking_lot::Mutex;
use rubelet_base::ErrorChain;
use rubelet_host::lock::{self, FileLock, LockError};
use rubelet_store::{Loaded, Record};
use tokio::time::Instant;

use super::{
    ImageStore, blocking,
    directories::{Directories, EMPTY, discard},
    records::{ImageRecord, LayerRecord},
    rootfs,
    state::{Layer, Snapshot, StoreState},
};
use crate::{
    Digest, Image, ImageSettings, OpenError, Reference, active_pulls::ActivePulls,
    manifest::parse_config, volumes::CopyThreads,
};

impl ImageStore {
    /// Opens the store below `root`, creates missing directories, removes incomplete images, and
    /// moves corrupt records aside.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub async fn open(root: &Path, settings: ImageSettings) -> Result<Arc<Self>, OpenError> {
        let root = root.to_owned();
        let now = Instant::now();
        blocking(move || Self::open_blocking(&root, settings, now).map(Arc::new)).await
    }

    fn open_blocking(
        root: &Path,
        settings: ImageSettings,
        now: Instant,
    ) -> Result<Self, OpenError> {
        let names = settings.pinned.iter();
        let pinned: Result<Vec<String>, OpenError> = names
            .map(|name| {
                let parsed = name.parse::<Reference>();
                let parsed = parsed.map_err(|source| OpenError::Pinned {
                    name: name.clone(),
                    source,
                })?;
                Ok(parsed.to_string())
            })
            .collect();
        let directories = Directories::new(root);
        directories
            .make()
            .map_err(|(path, source)| OpenError::Disk {
                step: "create",
                path,
                source,
            })?;
        let lock = lock(&directories)?;
        let store = Self {
            directories,
            settings,
            pinned: pinned?,
            state: Mutex::default(),
            disk: Mutex::default(),
            pulls: ActivePulls::default(),
            copies: CopyThreads::default(),
            _lock: lock,
        };
        store.sweep_ingest()?;
        let mut state = StoreState::default();
        store.find_layers(&mut state, now)?;
        store.find_images(&mut state)?;
        store.find_snapshots(&mut state)?;
        *store.state() = state;
        Ok(store)
    }

    fn sweep_ingest(&self) -> Result<(), OpenError> {
        let ingest = self.directories.ingest();
        // Leftovers that can't be removed use disk space, but do no other harm.
        discard(entries(&ingest)?.into_iter().map(|(_, path)| path));
        Ok(())
    }

    fn find_layers(&self, state: &mut StoreState, now: Instant) -> Result<(), OpenError> {
        for (name, path) in entries(&self.directories.layers())? {
            if name == EMPTY {
                continue;
            }
            let record = Record::<LayerRecord>::at(path.join(LayerRecord::FILE)).load();
            match (Digest::from_file_name(&name), record) {
                (Some(diff_id), Ok(Loaded::Valid(record))) if record.diff_id == diff_id => {
                    let layer = Layer {
                        record,
                        holds: 0,
                        orphaned: Some(now),
                    };
                    state.layers.insert(diff_id, layer);
                }
                (_, Err(error)) => {
                    return Err(OpenError::Disk {
                        step: "read the layer",
                        path,
                        source: io::Error::other(error),
                    });
                }
                _ => {
                    tracing::warn!(path = %path.display(), "Removing an incomplete layer");
                    self.throw_away(&path);
                }
            }
        }
        Ok(())
    }

    fn find_images(&self, state: &mut StoreState) -> Result<(), OpenError> {
        let mut records = Vec::new();
        for (name, path) in entries(&self.directories.images())? {
            if name.starts_with('.') && name.ends_with(".tmp") {
                // The temporary file of a record.
                discard([path]);
                continue;
            }
            let Some(id) = name
                .strip_suffix(".json")
                .filter(|_| !name.starts_with('.'))
            else {
                continue;
            };
            let record = Record::<ImageRecord>::at(&path);
            match record.load() {
                Ok(Loaded::Valid(image)) if image.id.digest().file_name() == id => {
                    records.push(image);
                }
                Ok(Loaded::Quarantined { moved_to, why }) => {
                    tracing::warn!(moved_to = %moved_to.display(), %why, "Image record is corrupt, moved away");
                }
                Ok(_) => {
                    tracing::warn!(path = %path.display(), "Image record does not belong to its file name, ignoring it");
                }
                Err(error) => {
                    return Err(OpenError::Disk {
                        step: "read the image",
                        path,
                        source: io::Error::other(error),
                    });
                }
            }
        }
        // A crash can leave a tag on two images: the higher number wins.
        let mut owners = std::collections::HashMap::<String, u64>::new();
        for (tag, number) in records.iter().flat_map(|record| &record.tags) {
            let highest = owners.entry(tag.clone()).or_default();
            *highest = (*highest).max(*number);
            state.sequence = state.sequence.max(*number);
        }
        for mut record in records {
            record
                .tags
                .retain(|tag, number| owners.get(tag) == Some(number));
            let whole = image_of(&record, state, &self.pinned);
            match whole.filter(|_| state.hold(&record.layers)) {
                Some(image) => drop(state.insert(image)),
                None => {
                    tracing::warn!(image = %record.id, "Removing an image whose layers are missing");
                    if let Err(error) =
                        Record::<ImageRecord>::at(self.directories.image(&record.id)).remove()
                    {
                        tracing::warn!(error = %ErrorChain(&error), "Failed to remove an image whose layers are missing");
                    }
                }
            }
        }
        Ok(())
    }

    fn find_snapshots(&self, state: &mut StoreState) -> Result<(), OpenError> {
        for (container_id, path) in entries(&self.directories.snapshots())? {
            let layers = rootfs::read_layers(&path).unwrap_or_default();
            let volumes = rootfs::read_volumes(&path).unwrap_or_default();
            // A container that needs it gets the error that its layers are missing; it can still be
            // removed.
            let mut held = |layers: Vec<Digest>| match state.hold(&layers) {
                true => layers,
                false => Vec::new(),
            };
            let snapshot = Snapshot {
                layers: held(layers),
                volumes: held(volumes),
                measured: None,
            };
            state.snapshots.insert(container_id, snapshot);
        }
        Ok(())
    }

    /// Moves a path into `ingest`, which the next start empties at the latest. Returns the new
    /// path, if the old one existed.
    pub(super) fn set_aside(&self, path: &Path) -> Option<PathBuf> {
        let trash = self.directories.unused();
        match fs::rename(path, &trash) {
            Ok(()) => Some(trash),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => {
                tracing::warn!(path = %path.display(), error = %ErrorChain(&error), "Failed to move a directory away");
                None
            }
        }
    }

    /// Renames a path immediately, then removes it, which may take long.
    pub(crate) fn throw_away(&self, path: &Path) {
        discard(self.set_aside(path));
    }
}

/// The image of a record. `None` if its configuration can't be read.
pub(super) fn image_of(
    record: &ImageRecord,
    state: &StoreState,
    pinned: &[String],
) -> Option<Image> {
    let config = parse_config(record.config_file.as_bytes()).ok()?;
    let mut size = record.config_file.len() as u64;
    let mut counted = std::collections::HashSet::new();
    for layer in &record.layers {
        if counted.insert(layer) {
            size += state
                .layers
                .get(layer)
                .map_or(0, |layer| layer.record.usage.bytes);
        }
    }
    Some(Image {
        id: record.id.clone(),
        repo_tags: record.tags.keys().cloned().collect(),
        repo_digests: record.digests.iter().cloned().collect(),
        size,
        config: Arc::new(config.file.config),
        layers: record.layers.clone(),
        platform: config.platform,
        pinned: record.pinned || record.tags.keys().any(|tag| pinned.contains(tag)),
        arrived_at: record.arrived_at,
    })
}

fn lock(directories: &Directories) -> Result<FileLock, OpenError> {
    let path = directories.lock();
    lock::take(&path).map_err(|error| match error {
        LockError::Taken { .. } => OpenError::InUse(directories.root().to_owned()),
        LockError::File(source) => OpenError::Disk {
            step: "lock",
            path,
            source,
        },
    })
}

/// The names and paths in a directory. Skips names that are not UTF-8: the store makes none.
fn entries(path: &Path) -> Result<Vec<(String, PathBuf)>, OpenError> {
    let disk = |source| OpenError::Disk {
        step: "list",
        path: path.to_owned(),
        source,
    };
    let mut found = Vec::new();
    for entry in fs::read_dir(path).map_err(disk)? {
        let entry = entry.map_err(disk)?;
        if let Ok(name) = entry.file_name().into_string() {
            found.push((name, entry.path()));
        }
    }
    found.sort();
    Ok(found)
}
