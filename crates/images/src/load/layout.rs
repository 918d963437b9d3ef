//! OCI layouts: an index, and blobs by their digests.

use std::{collections::BTreeMap, path::Path};

use super::{ArchivedImage, ArchivedLayer, of_image, read_config, source::ArchiveFiles};
use crate::{
    Digest, LoadError, PullError, PullErrorKind, Reference,
    manifest::{self, Descriptor, Document, Manifest},
    platform::Platform,
};

/// Maximum size of a document.
const MOST: u64 = 8 << 20;
/// Nesting of indexes.
const MAX_DEPTH: usize = 4;

/// A full name, as containerd and docker write it.
const FULL_NAME: &str = "io.containerd.image.name";
/// A full name or only a tag, depending on the writer.
const REF_NAME: &str = "org.opencontainers.image.ref.name";

/// The images of a layout: the best match for the platform from each index.
pub(super) fn find(
    source: &ArchiveFiles,
    platform: &Platform,
    path: &Path,
) -> Result<Vec<ArchivedImage>, LoadError> {
    let of_image = |image: &str| of_image(path, image);
    let index = source.read("index.json", MOST);
    let index = index.map_err(of_image("index.json"))?;
    let document = manifest::parse(&index, None).map_err(PullError::from);
    let Document::Index(entries) = document.map_err(of_image("index.json"))? else {
        return Err(LoadError::Form {
            path: path.to_owned(),
            why: "its index.json is not an image index".into(),
        });
    };
    let mut found: Vec<ArchivedImage> = Vec::new();
    for entry in &entries {
        let image = entry.digest.to_string();
        // Signatures and attestations may be next to the images.
        let is_other = entry
            .platform
            .as_ref()
            .is_some_and(|p| platform.fit(p).is_none());
        if is_other && entries.len() > 1 {
            continue;
        }
        let archived = image_of(source, entry, platform).map_err(of_image(&image))?;
        let Some(archived) = archived else {
            continue;
        };
        match found.iter_mut().find(|other| other.id == archived.id) {
            Some(other) => other.names.extend(archived.names),
            None => found.push(archived),
        }
    }
    Ok(found)
}

fn image_of(
    source: &ArchiveFiles,
    entry: &Descriptor,
    platform: &Platform,
) -> Result<Option<ArchivedImage>, PullError> {
    let Some((manifest, text)) = resolve(source, entry, platform, MAX_DEPTH)? else {
        return Ok(None);
    };
    let config = blob(source, &manifest.config)?;
    let (id, config, config_file) = read_config(config)?;
    let layers = manifest.layers.iter().map(|layer| ArchivedLayer {
        path: blob_path(&layer.digest),
        blob: Some((layer.digest.clone(), layer.size)),
    });
    Ok(Some(ArchivedImage {
        id,
        config,
        config_file,
        manifest: Some(text),
        layers: layers.collect(),
        names: names(&entry.annotations),
        digest: Some(entry.digest.clone()),
    }))
}

/// The manifest of `entry`, and its text. `None` if it has no manifest for this platform.
fn resolve(
    source: &ArchiveFiles,
    entry: &Descriptor,
    platform: &Platform,
    depth: usize,
) -> Result<Option<(Manifest, String)>, PullError> {
    if depth == 0 {
        let message = "the image index of the archive is nested too deeply";
        return Err(PullError::new(PullErrorKind::Refused, message));
    }
    let bytes = blob(source, entry)?;
    match manifest::parse(&bytes, Some(&entry.media_type))? {
        Document::Manifest(manifest) => {
            let text = String::from_utf8_lossy(&bytes).into_owned();
            Ok(Some((manifest, text)))
        }
        Document::Index(entries) => {
            for entry in manifest::choose(&entries, platform) {
                // An archive need not contain all blobs of its index.
                if source.has(&blob_path(&entry.digest)) {
                    return resolve(source, entry, platform, depth - 1);
                }
            }
            Ok(None)
        }
    }
}

fn blob(source: &ArchiveFiles, descriptor: &Descriptor) -> Result<Vec<u8>, PullError> {
    let bytes = source.read(&blob_path(&descriptor.digest), MOST)?;
    if !descriptor.digest.is_of(&bytes) {
        let message = format!("the content of {} has another digest", descriptor.digest);
        return Err(PullError::new(PullErrorKind::Refused, message));
    }
    Ok(bytes)
}

fn blob_path(digest: &Digest) -> String {
    format!("blobs/{}/{}", digest.algorithm().name(), digest.hex())
}

/// Names with a tag. A tag alone is ignored.
fn names(annotations: &BTreeMap<String, String>) -> Vec<String> {
    let full = annotations.get(FULL_NAME);
    let other = annotations.get(REF_NAME);
    let other = other.filter(|name| name.contains(['/', ':']));
    let name = full
        .or(other)
        .and_then(|name| name.parse::<Reference>().ok());
    name.and_then(|name| name.tagged()).into_iter().collect()
}
