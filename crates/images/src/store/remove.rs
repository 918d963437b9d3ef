//! Removes images, and layers without users.

use std::{path::PathBuf, sync::Arc, time::Duration};

use rubelet_store::Record;
use tokio::time::Instant;

use super::{
    ImageStore, RemovalResult, blocking, directories::discard, open::image_of, records::ImageRecord,
};
use crate::{Digest, ImageId, Reference, StoreError};

/// Time for which layers of a failed pull are kept for the next attempt.
const KEEP_ORPHANS: Duration = Duration::from_mins(30);

impl ImageStore {
    /// Removes the image with all its names, as CRI specifies. Containers that use it keep their
    /// layers, which are removed with the last container. Removing a missing image succeeds.
    ///
    /// # Errors
    /// The disk fails.
    pub async fn remove(self: &Arc<Self>, image: &str) -> Result<RemovalResult, StoreError> {
        let Some(id) = self.find(image).map(|image| image.id.clone()) else {
            return Ok(RemovalResult::default());
        };
        let store = Arc::clone(self);
        blocking(move || store.remove_image(&id)).await
    }

    /// Removes one name; the image is removed with its last tag. An identifier removes all.
    ///
    /// # Errors
    /// The disk fails.
    pub async fn untag(self: &Arc<Self>, image: &str) -> Result<RemovalResult, StoreError> {
        let Some(found) = self.find(image) else {
            return Ok(RemovalResult::default());
        };
        let (store, id) = (Arc::clone(self), found.id.clone());
        let name = image.parse::<Reference>().ok();
        let name = name.and_then(|reference| match reference.digest() {
            Some(digest) => Some(reference.at(digest)),
            None => reference.tagged(),
        });
        let has =
            |name: &String| found.repo_tags.contains(name) || found.repo_digests.contains(name);
        match name.filter(has) {
            Some(name) => blocking(move || store.untag_image(&id, name)).await,
            None => blocking(move || store.remove_image(&id)).await,
        }
    }

    fn untag_image(&self, id: &ImageId, name: String) -> Result<RemovalResult, StoreError> {
        let last = {
            let _one_at_a_time = self.disk();
            let Some(mut record) = self.record(id)? else {
                return Ok(RemovalResult::default());
            };
            let had_tags = !record.tags.is_empty();
            record.tags.remove(&name);
            record.digests.remove(&name);
            let last = record.tags.is_empty() && (had_tags || record.digests.is_empty());
            if !last {
                Record::at(self.directories.image(id)).save_synced(&record)?;
                let mut state = self.state();
                state.tags.remove(&name);
                if let Some(image) = image_of(&record, &state, &self.pinned) {
                    state.insert(image);
                }
            }
            last
        };
        if last {
            return self.remove_image(id);
        }
        Ok(RemovalResult {
            untagged: vec![name],
            image: None,
        })
    }

    fn remove_image(&self, id: &ImageId) -> Result<RemovalResult, StoreError> {
        let one_at_a_time = self.disk();
        Record::<ImageRecord>::at(self.directories.image(id)).remove()?;
        let (image, unused) = {
            let mut state = self.state();
            let Some(image) = state.remove(id) else {
                return Ok(RemovalResult::default());
            };
            state.release(&image.layers, Instant::now());
            let unused = state.take_unused(&image.layers);
            (image, unused)
        };
        let trash = self.set_layers_aside(&unused);
        drop(one_at_a_time);
        discard(trash);
        let names = image.repo_tags.iter().chain(&image.repo_digests);
        Ok(RemovalResult {
            untagged: names.cloned().collect(),
            image: Some(id.clone()),
        })
    }

    /// Removes orphaned layers that no pull has reused. Blocks.
    pub(crate) fn sweep(&self, all: bool) {
        let one_at_a_time = self.disk();
        let now = Instant::now();
        let before = if all {
            Some(now)
        } else {
            now.checked_sub(KEEP_ORPHANS)
        };
        let orphans = before.map(|before| self.state().take_orphans(before));
        let trash = self.set_layers_aside(&orphans.unwrap_or_default());
        drop(one_at_a_time);
        discard(trash);
    }

    /// Moves layers away that the state does not contain any more. The caller holds the disk lock.
    pub(super) fn set_layers_aside(&self, layers: &[Digest]) -> Vec<PathBuf> {
        let paths = layers.iter().map(|layer| self.directories.layer(layer));
        paths.filter_map(|path| self.set_aside(&path)).collect()
    }
}
