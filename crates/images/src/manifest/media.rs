//! Media types of images.

const OCI_MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const OCI_INDEX: &str = "application/vnd.oci.image.index.v1+json";
const OCI_CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const DOCKER_MANIFEST: &str = "application/vnd.docker.distribution.manifest.v2+json";
const DOCKER_INDEX: &str = "application/vnd.docker.distribution.manifest.list.v2+json";
const DOCKER_CONFIG: &str = "application/vnd.docker.container.image.v1+json";

/// The supported documents, for an `Accept` header.
pub(crate) const MANIFEST_TYPES: [&str; 4] =
    [OCI_INDEX, OCI_MANIFEST, DOCKER_INDEX, DOCKER_MANIFEST];

/// Layers: tar archives, optionally compressed; non-distributable ones have the same format. The
/// first bytes show the compression.
const LAYERS: [&str; 11] = [
    "application/vnd.oci.image.layer.v1.tar",
    "application/vnd.oci.image.layer.v1.tar+gzip",
    "application/vnd.oci.image.layer.v1.tar+zstd",
    "application/vnd.oci.image.layer.nondistributable.v1.tar",
    "application/vnd.oci.image.layer.nondistributable.v1.tar+gzip",
    "application/vnd.oci.image.layer.nondistributable.v1.tar+zstd",
    "application/vnd.docker.image.rootfs.diff.tar",
    "application/vnd.docker.image.rootfs.diff.tar.gzip",
    "application/vnd.docker.image.rootfs.diff.tar.zstd",
    "application/vnd.docker.image.rootfs.foreign.diff.tar.gzip",
    "application/vnd.docker.image.rootfs.foreign.diff.tar",
];

/// The kind of a media type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Media {
    /// One image.
    Manifest,
    /// Images for several machines.
    Index,
    /// The configuration file of an image.
    Config,
    /// A layer of an image.
    Layer,
    /// Not part of an image.
    Other,
}

impl Media {
    /// The kind of `text`; ignores parameters after a semicolon.
    #[must_use]
    pub(crate) fn of(text: &str) -> Self {
        let text = text.split(';').next().unwrap_or_default().trim();
        match text {
            OCI_MANIFEST | DOCKER_MANIFEST => Self::Manifest,
            OCI_INDEX | DOCKER_INDEX => Self::Index,
            OCI_CONFIG | DOCKER_CONFIG => Self::Config,
            layer if LAYERS.contains(&layer) => Self::Layer,
            _ => Self::Other,
        }
    }
}
