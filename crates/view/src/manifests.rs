//! Manifests as objects of `node.rubelet.dev/v1alpha1`.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use rubelet_server::{Collection, Object};
use rubelet_sources::status::ManifestStatus;
use serde_json::{Value, json};
use tokio::sync::watch;

/// Keeps a collection in sync with the sources' reports, until the sources are gone.
pub(super) async fn follow(
    mut manifests: watch::Receiver<Arc<Vec<ManifestStatus>>>,
    collection: Arc<Collection>,
) {
    let mut seen: BTreeMap<Box<str>, ManifestStatus> = BTreeMap::new();
    loop {
        let current = Arc::clone(&manifests.borrow_and_update());
        let names: BTreeSet<&str> = current.iter().map(|manifest| &*manifest.origin).collect();
        seen.retain(|origin, _| {
            let there = names.contains(&**origin);
            if !there {
                collection.remove("", origin);
            }
            there
        });
        for manifest in current.iter() {
            if seen.get(&manifest.origin) != Some(manifest) {
                let shown = manifest.clone();
                collection.put(Object::new("", &manifest.origin, move || render(&shown)));
                seen.insert(manifest.origin.clone(), manifest.clone());
            }
        }
        if manifests.changed().await.is_err() {
            return;
        }
    }
}

fn render(manifest: &ManifestStatus) -> Value {
    let place = if manifest.source == "http" {
        "url"
    } else {
        "path"
    };
    // The status holds text, numbers and times only: it always serialises.
    let status = serde_json::to_value(manifest).unwrap_or_default();
    json!({
        "metadata": { "name": *manifest.origin },
        "spec": { place: *manifest.origin },
        "status": status,
    })
}
