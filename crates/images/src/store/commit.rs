//! Commits layers and images to the store, atomically.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{self, File},
    io,
    path::Path,
    sync::Arc,
};

use rubelet_base::ErrorChain;
use rubelet_store::Record;
use tokio::time::Instant;

use super::{
    ImageStore,
    directories::discard,
    disk_error,
    open::image_of,
    records::{ImageRecord, LayerRecord, LayerSource},
    state::Layer,
};
use crate::{Digest, Image, ImageId, StoreError, clock, unpack::AppliedLayer};

/// An image whose layers are all in the store.
#[derive(Debug, Clone)]
pub(crate) struct NewImage {
    pub(crate) id: ImageId,
    /// Its name with a tag.
    pub(crate) tags: Vec<String>,
    /// Its names with a digest.
    pub(crate) digests: Vec<String>,
    pub(crate) layers: Vec<Digest>,
    pub(crate) config_file: String,
    pub(crate) manifest: Option<String>,
}

/// Keeps layers from being removed while a pull is running. containerd calls this a lease.
pub(crate) struct LayerLease {
    store: Arc<ImageStore>,
    layers: Vec<Digest>,
}

impl LayerLease {
    pub(crate) fn new(store: &Arc<ImageStore>) -> Self {
        Self {
            store: Arc::clone(store),
            layers: Vec::new(),
        }
    }

    /// Leases a layer, if it exists.
    pub(crate) fn add(&mut self, layer: &Digest) -> bool {
        let held = self.store.state().hold(std::slice::from_ref(layer));
        if held {
            self.layers.push(layer.clone());
        }
        held
    }

    /// Adds the layers of another lease.
    pub(crate) fn merge(&mut self, mut other: Self) {
        self.layers.append(&mut other.layers);
    }
}

impl Drop for LayerLease {
    fn drop(&mut self) {
        self.store.state().release(&self.layers, Instant::now());
    }
}

impl ImageStore {
    /// Commits the layer that was unpacked to `fs` in the directory `made`. Blocks until it is on disk.
    pub(crate) fn commit_layer(
        self: &Arc<Self>,
        made: &Path,
        diff_id: &Digest,
        applied: &AppliedLayer,
    ) -> Result<LayerLease, StoreError> {
        let record = LayerRecord::new(diff_id.clone(), applied);
        // The record is written last: it says that everything else is on the disk.
        // One syncfs(2) flushes all files of the layer; an fsync(2) of each would take far longer. Before
        // the lock is taken: this may take seconds, and other pulls go on.
        let directory = File::open(made).map_err(disk_error("open", made))?;
        let flushed = rustix::fs::syncfs(&directory).map_err(io::Error::from);
        flushed.map_err(disk_error("flush the disk of", made))?;
        Record::at(made.join(LayerRecord::FILE)).save_synced(&record)?;
        let target = self.directories.layer(diff_id);
        let one_at_a_time = self.disk();
        let mut hold = LayerLease::new(self);
        if hold.add(diff_id) {
            // Another pull committed the same layer first.
            drop(one_at_a_time);
            self.throw_away(made);
            return Ok(hold);
        }
        // Leftovers of a layer that the store does not know: rename(2) replaces empty directories only.
        let trash = self.set_aside(&target);
        fs::rename(made, &target).map_err(disk_error("move a layer to", &target))?;
        // The rename itself is on disk only after its directory is.
        let layers = self.directories.layers();
        let flushed = File::open(&layers).and_then(|directory| directory.sync_all());
        flushed.map_err(disk_error("flush", &layers))?;
        let layer = Layer {
            record,
            holds: 0,
            orphaned: None,
        };
        // No removal comes between: it takes the same lock.
        self.state().layers.insert(diff_id.clone(), layer);
        hold.add(diff_id);
        drop(one_at_a_time);
        // Removing a tree of files may take seconds.
        discard(trash);
        Ok(hold)
    }

    /// The registries that a layer came from.
    pub(crate) fn sources_of(&self, diff_id: &Digest) -> Vec<LayerSource> {
        let state = self.state();
        let layer = state.layers.get(diff_id);
        layer.map_or_else(Vec::new, |layer| layer.record.sources.clone())
    }

    /// Records a registry that has a layer, which the caller holds. Blocks.
    pub(crate) fn learn_source(
        &self,
        diff_id: &Digest,
        source: LayerSource,
    ) -> Result<(), StoreError> {
        let _one_at_a_time = self.disk();
        let record = {
            let mut state = self.state();
            let layer = state.layers.get_mut(diff_id);
            layer.and_then(|layer| layer.record.learn(source).then(|| layer.record.clone()))
        };
        if let Some(record) = record {
            let path = self.directories.layer(diff_id).join(LayerRecord::FILE);
            Record::at(path).save_synced(&record)?;
        }
        Ok(())
    }

    /// Writes the record of an image, whose layers the caller holds, and assigns its names. Blocks.
    pub(crate) fn commit_image(&self, arrival: NewImage) -> Result<Arc<Image>, StoreError> {
        let _one_at_a_time = self.disk();
        let old = self.record(&arrival.id)?;
        let is_new = !self.state().images.contains_key(&arrival.id);
        let mut record = old.unwrap_or_else(|| ImageRecord {
            id: arrival.id.clone(),
            tags: BTreeMap::new(),
            digests: BTreeSet::new(),
            layers: arrival.layers.clone(),
            config_file: arrival.config_file.clone(),
            manifest: None,
            pinned: false,
            arrived_at: clock::unix_nanos(),
        });
        record.manifest = arrival.manifest.or(record.manifest);
        let mut losers = BTreeSet::new();
        // A tag belongs to the image that got it last. Records are written one after the other, so a
        // crash may leave the tag in two of them: the higher number counts.
        {
            let mut state = self.state();
            for tag in arrival.tags {
                match state.tags.get(&tag) {
                    Some(owner) if *owner == record.id => continue,
                    Some(owner) => drop(losers.insert(owner.clone())),
                    None => {}
                }
                state.sequence += 1;
                record.tags.insert(tag, state.sequence);
            }
        }
        record.digests.extend(arrival.digests);
        // Without the lock of the state: a list of images must not wait for the disk.
        Record::at(self.directories.image(&record.id)).save_synced(&record)?;
        let image = {
            let mut state = self.state();
            // Each image holds its layers once, however often it is pulled.
            if is_new {
                state.hold(&record.layers);
            }
            let image = image_of(&record, &state, &self.pinned);
            let image = image.ok_or_else(|| StoreError::NoImage(record.id.to_string()))?;
            state.insert(image)
        };
        for loser in losers {
            // If this fails, the sequence numbers of the tags decide at the next start.
            if let Err(error) = self.refresh(&loser) {
                tracing::warn!(image = %loser, error = %ErrorChain(&error), "Cannot update the record of an image that lost its tag");
            }
        }
        Ok(image)
    }

    /// Removes tags from an image that other images have now.
    fn refresh(&self, id: &ImageId) -> Result<(), StoreError> {
        let Some(mut record) = self.record(id)? else {
            return Ok(());
        };
        let mut state = self.state();
        record.tags.retain(|tag, _| state.tags.get(tag) == Some(id));
        if let Some(image) = image_of(&record, &state, &self.pinned) {
            state.insert(image);
        }
        drop(state);
        Record::at(self.directories.image(id)).save_synced(&record)?;
        Ok(())
    }

    /// Pins an image, so that garbage collection skips it, or unpins it.
    ///
    /// # Errors
    /// It does not exist, or the disk fails.
    pub async fn pin(self: &Arc<Self>, image: &str, pinned: bool) -> Result<(), StoreError> {
        let no_image = || StoreError::NoImage(image.to_owned());
        let id = self.find(image).ok_or_else(no_image)?.id.clone();
        let store = Arc::clone(self);
        super::blocking(move || {
            let _one_at_a_time = store.disk();
            let record = store.record(&id)?;
            let mut record = record.ok_or_else(|| StoreError::NoImage(id.to_string()))?;
            record.pinned = pinned;
            Record::at(store.directories.image(&id)).save_synced(&record)?;
            let mut state = store.state();
            if let Some(image) = image_of(&record, &state, &store.pinned) {
                state.insert(image);
            }
            Ok(())
        })
        .await
    }
}
