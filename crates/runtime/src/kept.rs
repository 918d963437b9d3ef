//! The records of sandboxes and containers on disk.

use std::{collections::BTreeMap, fs, path::Path};

use rubelet_base::ErrorChain;
use rubelet_runtime_plan::record::{ContainerRecord, SandboxRecord};
use rubelet_store::{Loaded, Record, Stored};
use serde::{Deserialize, Serialize};

use crate::{
    fault::{Fault, Outcome},
    identifier::is_identifier,
};

/// A sandbox as it is kept.
#[derive(Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct KeptSandbox(pub(crate) SandboxRecord);

/// A container as it is kept.
#[derive(Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct KeptContainer(pub(crate) ContainerRecord);

impl Stored for KeptSandbox {
    const KIND: &'static str = "runtime-sandbox";
    const MIGRATIONS: &'static [rubelet_store::Migration] = &[];
}

impl Stored for KeptContainer {
    const KIND: &'static str = "runtime-container";
    const MIGRATIONS: &'static [rubelet_store::Migration] = &[];
}

/// Writes a record. Blocks.
pub(crate) fn save<T: Stored>(path: &Path, value: &T) -> Outcome<()> {
    Record::at(path)
        .save(value)
        .map(|_| ())
        .map_err(|error| Fault::failed(ErrorChain(&error).to_string()))
}

/// Removes a record. Blocks.
pub(crate) fn forget<T: Stored>(path: &Path) -> Outcome<()> {
    Record::<T>::at(path)
        .remove()
        .map_err(|error| Fault::failed(ErrorChain(&error).to_string()))
}

/// All records of a folder by their identifiers. Damaged ones are moved aside; what they held is
/// found and removed as leftovers are. Blocks.
pub(crate) fn load_all<T: Stored>(dir: &Path) -> Outcome<BTreeMap<String, T>> {
    let read =
        |error: std::io::Error| Fault::because(format!("cannot read {}", dir.display()), &error);
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(dir).map_err(read)? {
        let name = entry.map_err(read)?.file_name();
        let text = name.to_string_lossy();
        if text.starts_with('.') && text.ends_with(".tmp") {
            // A write that was cut off; the record itself is the one from before.
            if let Err(error) = fs::remove_file(dir.join(&name)) {
                tracing::warn!(file = %text, %error, "half a record stays");
            }
            continue;
        }
        let id = name.to_str().and_then(|name| name.strip_suffix(".json"));
        let Some(id) = id.filter(|id| is_identifier(id)) else {
            continue;
        };
        let loaded = Record::<T>::at(dir.join(&name)).load();
        match loaded.map_err(|error| Fault::failed(ErrorChain(&error).to_string()))? {
            Loaded::Valid(value) => {
                found.insert(id.to_owned(), value);
            }
            Loaded::Missing => {}
            Loaded::Quarantined { moved_to, why } => {
                tracing::warn!(id, moved_to = %moved_to.display(), %why, "a damaged record was moved aside");
            }
        }
    }
    Ok(found)
}
