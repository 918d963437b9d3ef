//! An image, for the runtime and for users.

use std::{fmt, str::FromStr, sync::Arc};

use rubelet_oci::image::ImageConfig;
use serde::{Deserialize, Serialize};

use crate::{
    digest::{Digest, DigestError},
    platform::Platform,
};

/// Identifies an image on this node: the digest of its configuration file, which names the contents
/// of the layers. It does not depend on how the image was pulled or loaded, and is what CRI calls
/// `image_ref`.
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

/// An image in the store, with all its layers.
#[derive(Debug, Clone, PartialEq)]
pub struct Image {
    /// Identifies it.
    pub id: ImageId,
    /// Its names with a tag, spelled out: `registry/repository:tag`. Sorted.
    pub repo_tags: Vec<String>,
    /// Its names with the digest of the manifest or index it was pulled by. Sorted.
    pub repo_digests: Vec<String>,
    /// Bytes that its layers use on disk, together with the configuration. Layers that it shares
    /// with other images are counted for each.
    pub size: u64,
    /// The `config` of its configuration file: the defaults for containers.
    pub config: Arc<ImageConfig>,
    /// Its layers, by diff ID, from the bottom to the top. The last one may be created here: it
    /// sets the attributes of directories that layers use without an entry.
    pub layers: Vec<Digest>,
    /// The platform it was built for.
    pub platform: Platform,
    /// Garbage collection must skip it.
    pub pinned: bool,
    /// Time of the pull or load, in nanoseconds since 1970.
    pub arrived_at: u64,
}

/// An image with its documents, for `rubelet image inspect`.
#[derive(Debug, Clone, PartialEq)]
pub struct ImageDetails {
    /// The image.
    pub image: Arc<Image>,
    /// Its configuration file, unchanged.
    pub config_file: String,
    /// Its manifest, unchanged; docker archives have none.
    pub manifest: Option<String>,
}
