//! Manifests, indexes and configuration files, of docker's and OCI's media types. Pure.

mod media;

use std::collections::BTreeMap;

use rubelet_oci::image::ImageFile;
use serde::Deserialize;

pub(crate) use self::media::{MANIFEST_TYPES, Media};
use crate::{Digest, platform::Platform};

/// A reference to a document, and how to verify it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Descriptor {
    /// Its claimed media type.
    #[serde(default)]
    pub media_type: String,
    /// Its digest.
    pub digest: Digest,
    /// Its size in bytes.
    pub size: u64,
    /// Its platform.
    #[serde(default)]
    pub platform: Option<Platform>,
    /// Its annotations.
    #[serde(default, deserialize_with = "null_is_empty")]
    pub annotations: BTreeMap<String, String>,
}

/// The parts of an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manifest {
    /// Its configuration file.
    pub config: Descriptor,
    /// Its layers, from the bottom to the top.
    pub layers: Vec<Descriptor>,
}

/// A manifest, or a list of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Document {
    /// One image.
    Manifest(Manifest),
    /// Images for several machines, or lists of them.
    Index(Vec<Descriptor>),
}

/// A configuration file, with its parsed diff IDs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// The whole file.
    pub file: ImageFile,
    /// Diff IDs of the layers, from the bottom to the top.
    pub diff_ids: Vec<Digest>,
    /// The platform it was built for.
    pub platform: Platform,
}

/// Why a document is invalid.
#[derive(Debug, thiserror::Error)]
pub enum ManifestError {
    /// It is not valid JSON of this type.
    #[error("cannot decode the {what}")]
    Json {
        /// The document.
        what: &'static str,
        /// The error.
        source: serde_json::Error,
    },
    /// It is ambiguous, so that two readers could see different images.
    #[error("the manifest is ambiguous: {0}")]
    Ambiguous(&'static str),
    /// Docker's schema 1, which has no content digests.
    #[error(
        "the image has only a Docker schema 1 manifest, which is not supported; \
         push it again with a newer tool"
    )]
    Schema1,
    /// It is not an image.
    #[error("unsupported media type {0:?}: not a container image")]
    Media(String),
    /// It is an invalid image.
    #[error("invalid image: {0}")]
    Invalid(&'static str),
    /// An unsupported layer.
    #[error("unsupported layer media type {0:?}")]
    Layer(String),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Raw {
    #[serde(default)]
    schema_version: u32,
    #[serde(default)]
    media_type: String,
    config: Option<Descriptor>,
    layers: Option<Vec<Descriptor>>,
    manifests: Option<Vec<Descriptor>>,
    fs_layers: Option<serde::de::IgnoredAny>,
}

/// Parses a manifest or index. `claimed` is the media type that its sender claims.
///
/// # Errors
/// See [`ManifestError`].
pub fn parse(bytes: &[u8], claimed: Option<&str>) -> Result<Document, ManifestError> {
    let raw: Raw = object(bytes, "manifest")?;
    if raw.schema_version == 1 || raw.fs_layers.is_some() {
        return Err(ManifestError::Schema1);
    }
    if raw.schema_version != 2 {
        return Err(ManifestError::Invalid("schemaVersion is not 2"));
    }
    let says = |text: &str| match Media::of(text) {
        Media::Manifest => Some(true),
        Media::Index => Some(false),
        _ => None,
    };
    let inner = says(&raw.media_type);
    if inner.is_none() && !raw.media_type.is_empty() {
        return Err(ManifestError::Media(raw.media_type));
    }
    let outer = claimed.and_then(says);
    if let (Some(inner), Some(outer)) = (inner, outer)
        && inner != outer
    {
        return Err(ManifestError::Ambiguous(
            "mediaType differs from the Content-Type of the registry",
        ));
    }
    let is_manifest = inner.or(outer);
    match (raw.config, raw.layers, raw.manifests) {
        (None, None, Some(manifests)) if is_manifest != Some(true) => {
            Ok(Document::Index(manifests))
        }
        (Some(config), Some(layers), None) if is_manifest != Some(false) => {
            Ok(Document::Manifest(check(config, layers)?))
        }
        (None, None, None) => Err(ManifestError::Invalid("neither layers nor manifests")),
        _ => Err(ManifestError::Ambiguous(
            "fields of a manifest and of an index",
        )),
    }
}

fn check(config: Descriptor, layers: Vec<Descriptor>) -> Result<Manifest, ManifestError> {
    if Media::of(&config.media_type) != Media::Config {
        return Err(ManifestError::Media(config.media_type));
    }
    for layer in &layers {
        if Media::of(&layer.media_type) != Media::Layer {
            return Err(ManifestError::Layer(layer.media_type.clone()));
        }
    }
    Ok(Manifest { config, layers })
}

/// Reads the configuration file of an image.
///
/// # Errors
/// It is invalid.
pub fn parse_config(bytes: &[u8]) -> Result<Config, ManifestError> {
    let file: ImageFile = object(bytes, "image configuration")?;
    let ids: Result<Vec<Digest>, _> = file.rootfs.diff_ids.iter().map(|id| id.parse()).collect();
    let diff_ids = ids.map_err(|_| ManifestError::Invalid("invalid layer diff ID"))?;
    let platform = Platform::new(&file.os, &file.architecture, &file.variant);
    Ok(Config {
        file,
        diff_ids,
        platform,
    })
}

fn object<T: serde::de::DeserializeOwned>(
    bytes: &[u8],
    what: &'static str,
) -> Result<T, ManifestError> {
    // serde would also accept a list of the fields' values.
    if bytes.trim_ascii_start().first() != Some(&b'{') {
        return Err(ManifestError::Invalid("expected a JSON object"));
    }
    serde_json::from_slice(bytes).map_err(|source| ManifestError::Json { what, source })
}

/// The manifests of an index that run on `platform`, the best first; among equals the first one.
#[must_use]
pub fn choose<'a>(manifests: &'a [Descriptor], platform: &Platform) -> Vec<&'a Descriptor> {
    let fit = |manifest: &&Descriptor| {
        let silent = Platform::default();
        let is_known = matches!(
            Media::of(&manifest.media_type),
            Media::Manifest | Media::Index
        );
        if !is_known && !manifest.media_type.is_empty() {
            return None;
        }
        platform.fit(manifest.platform.as_ref().unwrap_or(&silent))
    };
    let mut fitting: Vec<_> = manifests
        .iter()
        .filter_map(|manifest| Some((fit(&manifest)?, manifest)))
        .collect();
    fitting.sort_by_key(|(fit, _)| std::cmp::Reverse(*fit));
    fitting.into_iter().map(|(_, manifest)| manifest).collect()
}

fn null_is_empty<'de, D, T>(from: D) -> Result<T, D::Error>
where
    D: serde::Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::deserialize(from)?.unwrap_or_default())
}

#[cfg(test)]
mod tests;
