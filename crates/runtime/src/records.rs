//! The records of sandboxes and containers on disk.

use std::{collections::BTreeMap, fs, path::Path};

use rubelet_base::ErrorChain;
use rubelet_runtime_plan::record::{ContainerRecord, SandboxRecord};
use rubelet_store::{Loaded, Record, Stored};
use serde::{Deserialize, Serialize};

use crate::{
    error::{Result, RuntimeError},
    identifier::is_identifier,
};

/// A sandbox's record in its file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct StoredSandbox(pub(crate) SandboxRecord);

/// A container's record in its file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct StoredContainer(pub(crate) ContainerRecord);

impl Stored for StoredSandbox {
    const KIND: &'static str = "runtime-sandbox";
    const MIGRATIONS: &'static [rubelet_store::Migration] = &[];
}

impl Stored for StoredContainer {
    const KIND: &'static str = "runtime-container";
    const MIGRATIONS: &'static [rubelet_store::Migration] = &[];
}

/// Writes a record. Blocks.
pub(crate) fn save<T: Stored>(path: &Path, value: &T) -> Result<()> {
    Record::at(path)
        .save(value)
        .map(|_| ())
        .map_err(|error| RuntimeError::failed(ErrorChain(&error).to_string()))
}

/// Removes a record. Blocks.
pub(crate) fn remove<T: Stored>(path: &Path) -> Result<()> {
    Record::<T>::at(path)
        .remove()
        .map_err(|error| RuntimeError::failed(ErrorChain(&error).to_string()))
}

/// All records of a directory by their identifiers. Damaged records are renamed; their sandboxes
/// and containers are then removed as leftovers. Blocks.
pub(crate) fn load_all<T: Stored>(dir: &Path) -> Result<BTreeMap<String, T>> {
    let read = |error: std::io::Error| {
        RuntimeError::because(format!("cannot read {}", dir.display()), &error)
    };
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(dir).map_err(read)? {
        let name = entry.map_err(read)?.file_name();
        let text = name.to_string_lossy();
        if text.starts_with('.') && text.ends_with(".tmp") {
            // The temporary file of an interrupted write; the record itself is still the previous
            // version.
            if let Err(error) = fs::remove_file(dir.join(&name)) {
                tracing::warn!(file = %text, %error, "Failed to remove the temporary file of an interrupted write");
            }
            continue;
        }
        let id = name.to_str().and_then(|name| name.strip_suffix(".json"));
        let Some(id) = id.filter(|id| is_identifier(id)) else {
            continue;
        };
        let loaded = Record::<T>::at(dir.join(&name)).load();
        match loaded.map_err(|error| RuntimeError::failed(ErrorChain(&error).to_string()))? {
            Loaded::Valid(value) => {
                found.insert(id.to_owned(), value);
            }
            Loaded::Missing => {}
            Loaded::Quarantined { moved_to, why } => {
                tracing::warn!(id, moved_to = %moved_to.display(), %why, "Renamed a damaged record; its pod or container is removed");
            }
        }
    }
    Ok(found)
}
