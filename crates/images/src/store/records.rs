//! The records of images and layers.

use std::collections::{BTreeMap, BTreeSet};

use rubelet_store::{Migration, Stored};
use serde::{Deserialize, Serialize};

use crate::{
    Digest, ImageId, Usage,
    unpack::{Applied, FolderAttributes},
};

/// An image. Written when all its layers are there.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct ImageRecord {
    pub(super) id: ImageId,
    /// Names with a tag; of two images with the same, the one with the higher number has it.
    pub(super) tags: BTreeMap<String, u64>,
    /// Names with a digest.
    pub(super) digests: BTreeSet<String>,
    pub(super) layers: Vec<Digest>,
    pub(super) config_file: String,
    pub(super) manifest: Option<String>,
    #[serde(default)]
    pub(super) pinned: bool,
    /// Nanoseconds since 1970.
    pub(super) arrived_at: u64,
}

impl Stored for ImageRecord {
    const KIND: &'static str = "image";
    const MIGRATIONS: &'static [Migration] = &[];
}

/// A layer. In its folder, so that both come and go together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct LayerRecord {
    pub(super) diff_id: Digest,
    pub(super) usage: Usage,
    /// What the archive says of the root folder.
    pub(super) root: Option<FolderAttributes>,
    /// Folders without an entry of their own.
    #[serde(default)]
    pub(super) implicit: Vec<String>,
}

impl Stored for LayerRecord {
    const KIND: &'static str = "layer";
    const MIGRATIONS: &'static [Migration] = &[];
}

impl LayerRecord {
    pub(super) const FILE: &'static str = "layer.json";

    pub(super) fn new(diff_id: Digest, applied: &Applied) -> Self {
        let implicit = applied.implicit.iter();
        Self {
            diff_id,
            usage: applied.usage,
            root: applied.root,
            implicit: implicit
                .filter_map(|path| path.to_str().map(str::to_owned))
                .collect(),
        }
    }
}
