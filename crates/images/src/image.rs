//! An image as the runtime and the user see it.

use std::{fmt, str::FromStr, sync::Arc};

use rubelet_oci::image::ImageConfig;
use serde::{Deserialize, Serialize};

use crate::{
    digest::{Digest, DigestError},
    platform::Platform,
};

/// Identifies an image on this node: the digest of its configuration file, which says what the
/// layers hold. The same for each way in which the image came here, and what CRI calls `image_ref`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ImageId(pub(crate) Digest);

impl ImageId {
    /// The digest of the configuration file.
    #[must_use]
    pub fn digest(&self) -> &Digest {
        &self.0
    }
}

impl fmt::Display for ImageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for ImageId {
    type Err = DigestError;

    fn from_str(text: &str) -> Result<Self, DigestError> {
        text.parse().map(Self)
    }
}

/// An image that is here, whole, with all its layers.
#[derive(Debug, Clone, PartialEq)]
pub struct Image {
    /// Identifies it.
    pub id: ImageId,
    /// Its names with a tag, spelled out: `registry/repository:tag`. Sorted.
    pub repo_tags: Vec<String>,
    /// Its names with the digest of the manifest or index it was pulled by. Sorted.
    pub repo_digests: Vec<String>,
    /// Bytes that its layers take on disk, together with the configuration. Layers that it shares
    /// with other images are counted in each.
    pub size: u64,
    /// What its author wants the container to be.
    pub config: Arc<ImageConfig>,
    /// Its layers, by the digest of their plain archives, from the bottom to the top. The last one
    /// may be made here: folders that layers use without an entry get their attributes in it.
    pub layers: Vec<Digest>,
    /// What it was built for.
    pub platform: Platform,
    /// Garbage collection should pass it over.
    pub pinned: bool,
    /// When it came here, in nanoseconds since 1970.
    pub arrived_at: u64,
}

/// All that is known of an image, for a user who looks into it.
#[derive(Debug, Clone, PartialEq)]
pub struct ImageDetails {
    /// The image.
    pub image: Arc<Image>,
    /// Its configuration file, byte for byte, as its author wrote it.
    pub config_file: String,
    /// Its manifest, byte for byte; none where it came from a docker archive, which has none.
    pub manifest: Option<String>,
}
