//! Manifests, indexes and configuration files, of docker's and of OCI's media types. No effects.

mod media;

use std::collections::BTreeMap;

use rubelet_oci::image::ImageFile;
use serde::Deserialize;

pub use self::media::{MANIFEST_TYPES, Media};
use crate::{Digest, platform::Platform};

/// What another document is, and how to know it when it comes.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Descriptor {
    /// What it claims to be.
    #[serde(default)]
    pub media_type: String,
    /// Its content's digest.
    pub digest: Digest,
    /// Its content's bytes.
    pub size: u64,
    /// For which machine it is.
    #[serde(default)]
    pub platform: Option<Platform>,
    /// What else its author says.
    #[serde(default, deserialize_with = "null_is_empty")]
    pub annotations: BTreeMap<String, String>,
}

/// What an image is made of.
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

/// A configuration file, with its layers' digests read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// All it says.
    pub file: ImageFile,
    /// Digests of the layers' plain archives, from the bottom to the top.
    pub diff_ids: Vec<Digest>,
    /// What it was built for.
    pub platform: Platform,
}

/// Why a document can't be used.
#[derive(Debug, thiserror::Error)]
pub enum ManifestError {
    /// It is not JSON of this form.
    #[error("the {what} is damaged")]
    Json {
        /// Which document.
        what: &'static str,
        /// What is wrong.
        source: serde_json::Error,
    },
    /// It could be read in two ways, so that two readers see two images.
    #[error("the manifest is ambiguous: {0}")]
    Ambiguous(&'static str),
    /// Docker's first form, which names no content by digest.
    #[error(
        "the image has only a manifest of docker's schema 1, which nobody can check; \
         push it again with a newer tool"
    )]
    Schema1,
    /// It is something else than an image.
    #[error("{0:?} is not the media type of an image; this cannot run as a container")]
    Media(String),
    /// It has what no image has.
    #[error("the image is not valid: {0}")]
    Invalid(&'static str),
    /// A layer that can't be used.
    #[error("the image has a layer of the media type {0:?}, which is not supported")]
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

/// Reads a manifest or index. `claimed` is what the one who gave it says that it is.
///
/// # Errors
/// See [`ManifestError`].
pub fn parse(bytes: &[u8], claimed: Option<&str>) -> Result<Document, ManifestError> {
    let raw: Raw = object(bytes, "manifest")?;
    if raw.schema_version == 1 || raw.fs_layers.is_some() {
        return Err(ManifestError::Schema1);
    }
    if raw.schema_version != 2 {
        return Err(ManifestError::Invalid("its schema version is not 2"));
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
            "its media type is not what the registry says",
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
        (None, None, None) => Err(ManifestError::Invalid(
            "it has neither layers nor manifests",
        )),
        _ => Err(ManifestError::Ambiguous(
            "it has parts of a manifest and of an index",
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
/// It is not one.
pub fn parse_config(bytes: &[u8]) -> Result<Config, ManifestError> {
    let file: ImageFile = object(bytes, "image configuration")?;
    let ids: Result<Vec<Digest>, _> = file.rootfs.diff_ids.iter().map(|id| id.parse()).collect();
    let diff_ids = ids.map_err(|_| ManifestError::Invalid("a layer's digest is none"))?;
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
    // A list of the fields' values would do otherwise.
    if bytes.trim_ascii_start().first() != Some(&b'{') {
        return Err(ManifestError::Invalid("a document of it is no JSON object"));
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
