//! OCI layouts: an index, and blobs by their digests.

use std::{collections::BTreeMap, path::Path};

use super::{Archived, ArchivedLayer, of_image, read_config, source::Source};
use crate::{
    Digest, LoadError, PullError, PullErrorKind, Reference,
    manifest::{self, Descriptor, Document, Manifest},
    platform::Platform,
};

/// The most bytes of a document.
const MOST: u64 = 8 << 20;
/// Indexes in indexes.
const MAX_DEPTH: usize = 4;

/// A full name, as containerd and docker write it.
const FULL_NAME: &str = "io.containerd.image.name";
/// A full name or a tag alone, whoever writes it decides.
const REF_NAME: &str = "org.opencontainers.image.ref.name";

/// The images of a layout: of each index the one that fits best.
pub(super) fn find(
    source: &Source,
    platform: &Platform,
    path: &Path,
) -> Result<Vec<Archived>, LoadError> {
    let of_image = |image: &str| of_image(path, image);
    let index = source.read("index.json", MOST);
    let index = index.map_err(of_image("index.json"))?;
    let document = manifest::parse(&index, None).map_err(PullError::from);
    let Document::Index(entries) = document.map_err(of_image("index.json"))? else {
        return Err(LoadError::Form {
            path: path.to_owned(),
            why: "its index.json is no index".into(),
        });
    };
    let mut found: Vec<Archived> = Vec::new();
    for entry in &entries {
        let image = entry.digest.to_string();
        // Signatures and the like stand beside the images at times.
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
    source: &Source,
    entry: &Descriptor,
    platform: &Platform,
) -> Result<Option<Archived>, PullError> {
    let Some((manifest, text)) = resolve(source, entry, platform, MAX_DEPTH)? else {
        return Ok(None);
    };
    let config = blob(source, &manifest.config)?;
    let (id, config, config_file) = read_config(config)?;
    let layers = manifest.layers.iter().map(|layer| ArchivedLayer {
        path: blob_path(&layer.digest),
        blob: Some((layer.digest.clone(), layer.size)),
    });
    Ok(Some(Archived {
        id,
        config,
        config_file,
        manifest: Some(text),
        layers: layers.collect(),
        names: names(&entry.annotations),
        digest: Some(entry.digest.clone()),
    }))
}

/// The manifest that `entry` leads to, and its text. `None` if it has none for this platform.
fn resolve(
    source: &Source,
    entry: &Descriptor,
    platform: &Platform,
    depth: usize,
) -> Result<Option<(Manifest, String)>, PullError> {
    if depth == 0 {
        let message = "the indexes of the archive lead in a ring";
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
                // An archive need not have all that its index speaks of.
                if source.has(&blob_path(&entry.digest)) {
                    return resolve(source, entry, platform, depth - 1);
                }
            }
            Ok(None)
        }
    }
}

fn blob(source: &Source, descriptor: &Descriptor) -> Result<Vec<u8>, PullError> {
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

/// Names with a tag. A tag alone names nothing.
fn names(annotations: &BTreeMap<String, String>) -> Vec<String> {
    let full = annotations.get(FULL_NAME);
    let other = annotations.get(REF_NAME);
    let other = other.filter(|name| name.contains(['/', ':']));
    let name = full
        .or(other)
        .and_then(|name| name.parse::<Reference>().ok());
    name.and_then(|name| name.tagged()).into_iter().collect()
}
