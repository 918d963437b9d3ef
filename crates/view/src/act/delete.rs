//! Shortening a pod's termination. Whether the pod terminates is decided by its manifest.

use std::time::Duration;

use rubelet_node_state::pod_board::PodEntry;
use rubelet_server::ActionError;
use rubelet_sources::status::ManifestStatus;

use super::not_kept;
use crate::LocalView;

/// The shortest grace (kubelet: pod workers).
const SHORTEST: Duration = Duration::from_secs(1);

pub(super) async fn delete(
    view: &LocalView,
    entry: &PodEntry,
    grace: Option<u64>,
) -> Result<(), ActionError> {
    let Some((_, planned)) = entry.deletion else {
        let manifests = view.parts.manifests.borrow().clone();
        return Err(ActionError::Conflict(kept(entry, &manifests)));
    };
    let Some(asked) = grace else {
        return Ok(());
    };
    let asked = Duration::from_secs(asked).max(SHORTEST);
    let now = view.parts.clock.now();
    let shortened = view.parts.intents.update(&entry.pod.uid, |intents| {
        if asked < planned {
            intents.shorten_grace(asked, now);
        }
    });
    shortened.await.map_err(|error| not_kept(&error))
}

/// Explains what keeps a pod, and how to remove it.
fn kept(entry: &PodEntry, manifests: &[ManifestStatus]) -> String {
    let name = &entry.pod.name;
    let manifest = manifests.iter().find(|manifest| {
        let mut pods = manifest.pods.iter();
        pods.any(|pod| *pod.namespace == *name.namespace && *pod.name == *name.name)
    });
    match manifest {
        Some(manifest) if manifest.source == "http" => format!(
            "the pod is kept by the manifest URL {}: take it out of what is served there",
            manifest.origin
        ),
        Some(manifest) => format!(
            "the pod is kept by manifest {}: remove or move that file",
            manifest.origin
        ),
        None => format!(
            "the pod is kept by its source ({}); `rubelet get manifests` shows where pods come from",
            entry.pod.source.as_str()
        ),
    }
}
