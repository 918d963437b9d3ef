//! The records of images and layers.

use std::collections::{BTreeMap, BTreeSet};

use rubelet_store::{Migration, Stored};
use serde::{Deserialize, Serialize};

use crate::{
    Digest, DiskUsage, ImageId,
    unpack::{AppliedLayer, DirectoryAttributes},
};

/// Maximum number of recorded sources of a layer. From others it is downloaded again.
const MOST_SOURCES: usize = 64;

/// An image. Written when all its layers are there.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct ImageRecord {
    pub(super) id: ImageId,
    /// Names with a tag; if two images have the same, the one with the higher number owns it.
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

/// A registry that a complete and verified layer came from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LayerSource {
    /// Host and port of the registry.
    pub(crate) registry: String,
    /// The repository there.
    pub(crate) repository: String,
    /// The compressed layer.
    pub(crate) blob: Digest,
    /// It was pulled without credentials.
    pub(crate) anonymous: bool,
}

/// A layer. Stored in its directory, so that both are removed together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct LayerRecord {
    pub(super) diff_id: Digest,
    pub(super) usage: DiskUsage,
    /// The root directory's attributes in the archive.
    pub(super) root: Option<DirectoryAttributes>,
    /// Directories without their own entry.
    #[serde(default)]
    pub(super) implicit: Vec<String>,
    /// Its sources; empty for layers of archives.
    #[serde(default)]
    pub(super) sources: Vec<LayerSource>,
}

impl Stored for LayerRecord {
    const KIND: &'static str = "layer";
    const MIGRATIONS: &'static [Migration] = &[];
}

impl LayerRecord {
    pub(super) const FILE: &'static str = "layer.json";

    pub(super) fn new(diff_id: Digest, applied: &AppliedLayer) -> Self {
        let implicit = applied.implicit.iter();
        Self {
            diff_id,
            usage: applied.usage,
            root: applied.root,
            implicit: implicit
                .filter_map(|path| path.to_str().map(str::to_owned))
                .collect(),
            sources: Vec::new(),
        }
    }

    /// Adds a source; `false` if it is known, or the limit is reached.
    pub(super) fn learn(&mut self, source: LayerSource) -> bool {
        let same = |known: &LayerSource| {
            (&known.registry, &known.repository, &known.blob)
                == (&source.registry, &source.repository, &source.blob)
        };
        if let Some(known) = self.sources.iter_mut().find(|known| same(known)) {
            return source.anonymous && !std::mem::replace(&mut known.anonymous, true);
        }
        let has_room = self.sources.len() < MOST_SOURCES;
        if has_room {
            self.sources.push(source);
        }
        has_room
    }
}
