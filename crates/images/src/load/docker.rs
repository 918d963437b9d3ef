//! Docker archives: `manifest.json` names the files of each image.

use std::path::Path;

use serde::Deserialize;

use super::{ArchivedImage, ArchivedLayer, of_image, read_config, source::ArchiveFiles};
use crate::{LoadError, Reference};

/// Maximum size of a document.
const MOST: u64 = 8 << 20;

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Item {
    config: String,
    repo_tags: Option<Vec<String>>,
    #[serde(default)]
    layers: Vec<String>,
}

/// Adds the images of a docker archive to those of the OCI layout: newer archives have both forms, and
/// only this one has all names.
pub(super) fn find(
    source: &ArchiveFiles,
    path: &Path,
    found: &mut Vec<ArchivedImage>,
) -> Result<(), LoadError> {
    let of_image = |image: &str| of_image(path, image);
    let bytes = source.read("manifest.json", MOST);
    let bytes = bytes.map_err(of_image("manifest.json"))?;
    let items: Vec<Item> = serde_json::from_slice(&bytes).map_err(|error| LoadError::Form {
        path: path.to_owned(),
        why: format!("cannot decode manifest.json: {error}"),
    })?;
    for item in items {
        let parsed = source.read(&item.config, MOST).and_then(read_config);
        let (id, config, config_file) = parsed.map_err(of_image(&item.config))?;
        let tags = item.repo_tags.unwrap_or_default();
        let names = tags.iter().filter_map(|tag| tag.parse::<Reference>().ok());
        let names: Vec<String> = names.filter_map(|name| name.tagged()).collect();
        if let Some(known) = found.iter_mut().find(|known| known.id == id) {
            for name in names {
                if !known.names.contains(&name) {
                    known.names.push(name);
                }
            }
            continue;
        }
        let layers = item.layers.into_iter();
        found.push(ArchivedImage {
            id,
            config,
            config_file,
            manifest: None,
            layers: layers
                .map(|path| ArchivedLayer { path, blob: None })
                .collect(),
            names,
            digest: None,
        });
    }
    Ok(())
}
