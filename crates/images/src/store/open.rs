//! Opening a store: what is whole is taken in, what is half is thrown away.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

use rubelet_base::ErrorChain;
use rubelet_host::lock::{self, FileLock, LockError};
use rubelet_store::{Loaded, Record};
use tokio::time::Instant;

use super::{
    ImageStore, blocking,
    folders::{EMPTY, Folders},
    records::{ImageRecord, LayerRecord},
    rootfs,
    state::{Layer, Snapshot, State},
};
use crate::{
    Digest, Image, ImageSettings, OpenError, Reference, manifest::parse_config, pull::Pulls, tree,
};

impl ImageStore {
    /// Opens the store below `root`, makes its folders if there are none, throws half images away
    /// and moves damaged records aside.
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
        let folders = Folders::new(root);
        folders.make().map_err(|(path, source)| OpenError::Disk {
            step: "make",
            path,
            source,
        })?;
        let lock = lock(&folders)?;
        let store = Self {
            folders,
            settings,
            pinned: pinned?,
            state: Mutex::default(),
            disk: Mutex::default(),
            pulls: Pulls::default(),
            _lock: lock,
        };
        store.sweep_ingest()?;
        let mut state = State::default();
        store.find_layers(&mut state, now)?;
        store.find_images(&mut state)?;
        store.find_snapshots(&mut state)?;
        *store.state() = state;
        Ok(store)
    }

    fn sweep_ingest(&self) -> Result<(), OpenError> {
        let ingest = self.folders.ingest();
        // What can't be removed takes space, but keeps nobody from working.
        discard(entries(&ingest)?.into_iter().map(|(_, path)| path));
        Ok(())
    }

    fn find_layers(&self, state: &mut State, now: Instant) -> Result<(), OpenError> {
        for (name, path) in entries(&self.folders.layers())? {
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
                    tracing::warn!(path = %path.display(), "half a layer is removed");
                    self.throw_away(&path);
                }
            }
        }
        Ok(())
    }

    fn find_images(&self, state: &mut State) -> Result<(), OpenError> {
        let mut records = Vec::new();
        for (name, path) in entries(&self.folders.images())? {
            if name.starts_with('.') && name.ends_with(".tmp") {
                // Of a record that was being written.
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
                    tracing::warn!(moved_to = %moved_to.display(), %why, "the record of an image is damaged");
                }
                Ok(_) => {
                    tracing::warn!(path = %path.display(), "a record is in the place of another");
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
        // Where a crash left a tag with two images, the one that got it later has it.
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
                    tracing::warn!(image = %record.id, "half an image is removed");
                    if let Err(error) =
                        Record::<ImageRecord>::at(self.folders.image(&record.id)).remove()
                    {
                        tracing::warn!(error = %ErrorChain(&error), "half an image stays");
                    }
                }
            }
        }
        Ok(())
    }

    fn find_snapshots(&self, state: &mut State) -> Result<(), OpenError> {
        for (container_id, path) in entries(&self.folders.snapshots())? {
            let layers = rootfs::read_layers(&path).unwrap_or_default();
            let volumes = rootfs::read_volumes(&path).unwrap_or_default();
            // Whoever asks for it finds out that its layers are gone; it can still be removed.
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

    /// Moves something to where it is removed at the next start at the latest. Where it is now, if
    /// it was there.
    pub(super) fn set_aside(&self, path: &Path) -> Option<PathBuf> {
        let trash = self.folders.unused();
        match fs::rename(path, &trash) {
            Ok(()) => Some(trash),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => {
                tracing::warn!(path = %path.display(), error = %ErrorChain(&error), "cannot move away");
                None
            }
        }
    }

    /// Moves something away at once, and removes it, which may take long.
    pub(crate) fn throw_away(&self, path: &Path) {
        discard(self.set_aside(path));
    }
}

/// Removes what was set aside.
pub(super) fn discard(trash: impl IntoIterator<Item = PathBuf>) {
    for path in trash {
        if let Err(error) = tree::remove(&path) {
            // The next start tries again.
            tracing::warn!(path = %path.display(), error = %ErrorChain(&error), "cannot remove");
        }
    }
}

/// The image of a record. `None` if its configuration can't be read.
pub(super) fn image_of(record: &ImageRecord, state: &State, pinned: &[String]) -> Option<Image> {
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

fn lock(folders: &Folders) -> Result<FileLock, OpenError> {
    let path = folders.lock();
    lock::take(&path).map_err(|error| match error {
        LockError::Taken { .. } => OpenError::InUse(folders.root().to_owned()),
        LockError::File(source) => OpenError::Disk {
            step: "lock",
            path,
            source,
        },
    })
}

/// The names and paths in a folder, as far as they are text; nothing of ours is anything else.
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
