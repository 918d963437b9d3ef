//! The images, layers and snapshots on the disk, and their users. Pure.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use tokio::time::Instant;

use super::records::LayerRecord;
use crate::{Digest, DiskUsage, Image, ImageId, Reference};

#[derive(Default)]
pub(super) struct StoreState {
    pub(super) images: BTreeMap<ImageId, Arc<Image>>,
    /// Names with a tag.
    pub(super) tags: HashMap<String, ImageId>,
    pub(super) layers: HashMap<Digest, Layer>,
    pub(super) snapshots: BTreeMap<String, Snapshot>,
    /// The highest sequence number of a tag.
    pub(super) sequence: u64,
}

pub(super) struct Layer {
    pub(super) record: LayerRecord,
    /// Images, root file systems and pulls that need it.
    pub(super) holds: usize,
    /// Time at which the last user was removed.
    pub(super) orphaned: Option<Instant>,
}

pub(super) struct Snapshot {
    /// Layers below it, from the bottom to the top.
    pub(super) layers: Vec<Digest>,
    /// Layers of the images that the container mounts.
    pub(super) volumes: Vec<Digest>,
    /// Its measured usage, and the time of the measurement.
    pub(super) measured: Option<(Instant, DiskUsage)>,
}

impl StoreState {
    /// Adds a user to each layer. `false`, without a change, if one is missing.
    pub(super) fn hold(&mut self, layers: &[Digest]) -> bool {
        if !layers.iter().all(|layer| self.layers.contains_key(layer)) {
            return false;
        }
        for layer in layers {
            if let Some(layer) = self.layers.get_mut(layer) {
                layer.holds += 1;
                layer.orphaned = None;
            }
        }
        true
    }

    /// Removes a user from each layer. Layers without users are kept until the next sweep.
    pub(super) fn release(&mut self, layers: &[Digest], now: Instant) {
        for layer in layers {
            if let Some(layer) = self.layers.get_mut(layer) {
                layer.holds = layer.holds.saturating_sub(1);
                if layer.holds == 0 {
                    layer.orphaned = Some(now);
                }
            }
        }
    }

    /// Removes and returns the layers without users since `before`.
    pub(super) fn take_orphans(&mut self, before: Instant) -> Vec<Digest> {
        let is_old = |layer: &Layer| {
            layer.holds == 0 && layer.orphaned.is_none_or(|orphaned| orphaned <= before)
        };
        let old = self.layers.iter().filter(|(_, layer)| is_old(layer));
        let old: Vec<Digest> = old.map(|(digest, _)| digest.clone()).collect();
        for digest in &old {
            self.layers.remove(digest);
        }
        old
    }

    /// Removes and returns those of `layers` without users.
    pub(super) fn take_unused(&mut self, layers: &[Digest]) -> Vec<Digest> {
        let mut unused = Vec::new();
        for digest in layers {
            if self
                .layers
                .get(digest)
                .is_some_and(|layer| layer.holds == 0)
            {
                self.layers.remove(digest);
                unused.push(digest.clone());
            }
        }
        unused
    }

    /// Finds the image that a user names.
    pub(super) fn find(&self, image: &str) -> Option<&Arc<Image>> {
        if let Ok(id) = image.parse::<ImageId>() {
            let by_id = self.images.get(&id);
            return by_id.or_else(|| self.by_manifest(id.digest()));
        }
        if let Ok(reference) = image.parse::<Reference>()
            && let Some(found) = self.by_name(&reference)
        {
            return Some(found);
        }
        self.by_prefix(image)
    }

    fn by_name(&self, reference: &Reference) -> Option<&Arc<Image>> {
        if let Some(digest) = reference.digest() {
            let name = reference.at(digest);
            let mut images = self.images.values();
            return images.find(|image| image.repo_digests.contains(&name));
        }
        self.images.get(self.tags.get(&reference.tagged()?)?)
    }

    fn by_manifest(&self, digest: &Digest) -> Option<&Arc<Image>> {
        let digest = format!("@{digest}");
        let has = |image: &&Arc<Image>| {
            image
                .repo_digests
                .iter()
                .any(|name| name.ends_with(&digest))
        };
        self.images.values().find(has)
    }

    fn by_prefix(&self, text: &str) -> Option<&Arc<Image>> {
        let prefix = text.strip_prefix("sha256:").unwrap_or(text);
        let is_hex = |b: u8| matches!(b, b'0'..=b'9' | b'a'..=b'f');
        if prefix.is_empty() || !prefix.bytes().all(is_hex) {
            return None;
        }
        let is_meant = |id: &ImageId| id.digest().hex().starts_with(prefix);
        let mut meant = self.images.iter().filter(|(id, _)| is_meant(id));
        let (_, image) = meant.next()?;
        meant.next().is_none().then_some(image)
    }

    /// Adds or replaces an image, and gives it its tags.
    pub(super) fn insert(&mut self, image: Image) -> Arc<Image> {
        let image = Arc::new(image);
        for tag in &image.repo_tags {
            self.tags.insert(tag.clone(), image.id.clone());
        }
        self.images.insert(image.id.clone(), Arc::clone(&image));
        image
    }

    /// Removes an image and its names.
    pub(super) fn remove(&mut self, id: &ImageId) -> Option<Arc<Image>> {
        self.tags.retain(|_, owner| owner != id);
        self.images.remove(id)
    }
}
