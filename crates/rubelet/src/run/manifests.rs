//! The manifest sources, their state across restarts, and their events.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::{Context as _, anyhow};
use rubelet_base::ErrorChain;
use rubelet_config::Resolved;
use rubelet_kubelet::agent::Agent;
use rubelet_node_state::{
    clock::Clock,
    events::{EventType, Recorder, Subject},
};
use rubelet_sources::{
    FileConfig, SourcesConfig, SourcesHandle, UrlConfig,
    state::{AdoptedPod, AdoptedPods, LastGoodPod, ManifestEdits},
    status::ManifestEvent,
};
use rubelet_store::{Loaded, Migration, Record, Stored};
use serde::{Deserialize, Serialize};
use tokio::{
    sync::{mpsc, watch},
    task::spawn_blocking,
};
use tracing::warn;

use super::node::Node;

/// Last good definitions of manifests that are invalid now.
#[derive(Serialize, Deserialize)]
struct HeldPods(Vec<LastGoodPod>);

impl Stored for HeldPods {
    const KIND: &'static str = "held-manifests";
    const MIGRATIONS: &'static [Migration] = &[];
}

/// Whether the configuration names a directory or a URL.
pub(super) fn are_configured(resolved: &Resolved) -> bool {
    let config = &resolved.config;
    !config.static_pod_path.is_empty() || !config.static_pod_url.is_empty()
}

/// Starts the directory and the URL that the configuration names.
pub(super) async fn start(
    resolved: &Resolved,
    node: &Node,
    record: &Path,
    clock: &Clock,
    adopted: AdoptedPods,
) -> anyhow::Result<SourcesHandle> {
    let config = &resolved.config;
    let file = (!config.static_pod_path.is_empty()).then(|| FileConfig {
        path: PathBuf::from(&config.static_pod_path),
        check_frequency: config.file_check_frequency,
    });
    let url = (!config.static_pod_url.is_empty()).then(|| UrlConfig {
        url: config.static_pod_url.clone(),
        headers: config
            .static_pod_url_header
            .iter()
            .flat_map(|(name, values)| values.iter().map(|value| (name.clone(), value.clone())))
            .collect(),
        check_frequency: config.http_check_frequency,
        roots: rubelet_sources::Roots::System,
    });
    if file.is_none() && url.is_none() && !resolved.joined {
        warn!("No source of pods is configured: set --pod-manifest-path or --manifest-url");
    }
    let record = record.to_owned();
    let held = spawn_blocking(move || load(&record))
        .await
        .context("cannot read the record of held manifests")?;
    let clock = clock.clone();
    let sources = rubelet_sources::spawn(
        SourcesConfig {
            node_name: node.name.to_string(),
            file,
            url,
            edits: edits(resolved),
            adopted,
            held,
        },
        move || clock.now(),
    );
    sources.map_err(|error| anyhow!("{}", ErrorChain(&error)))
}

fn load(path: &Path) -> Vec<LastGoodPod> {
    match Record::<HeldPods>::at(path).load() {
        Ok(Loaded::Valid(HeldPods(pods))) => pods,
        Ok(Loaded::Missing) => Vec::new(),
        Ok(Loaded::Quarantined { moved_to, why }) => {
            warn!(moved_to = %moved_to.display(), %why, "Moved the damaged record of held manifests aside");
            Vec::new()
        }
        Err(error) => {
            warn!(error = %ErrorChain(&error), "Cannot read the record of held manifests");
            Vec::new()
        }
    }
}

/// Keeps the record in sync with the sources, forever.
pub(super) async fn keep_held(mut held: watch::Receiver<Arc<Vec<LastGoodPod>>>, record: PathBuf) {
    while held.changed().await.is_ok() {
        let pods = HeldPods(held.borrow_and_update().to_vec());
        let path = record.clone();
        let saved = spawn_blocking(move || {
            let record = Record::at(path);
            if pods.0.is_empty() {
                return record
                    .remove()
                    .map_err(|error| ErrorChain(&error).to_string());
            }
            record
                .save(&pods)
                .map(drop)
                .map_err(|error| ErrorChain(&error).to_string())
        });
        if let Ok(Err(error)) = saved.await {
            warn!(error, "Cannot write the record of held manifests");
        }
    }
}

/// The effect of an edit of a manifest on its pod.
pub(super) fn edits(resolved: &Resolved) -> ManifestEdits {
    match resolved.rubelet.replaces_static_pods(resolved.joined) {
        true => ManifestEdits::Replace,
        false => ManifestEdits::InPlace,
    }
}

/// Pods of manifests that run already, perhaps by another kubelet: those whose manifest is the same
/// keep their UID.
pub(super) async fn adopted(agent: &Agent) -> AdoptedPods {
    let mut found = AdoptedPods::new();
    for (name, uid, content) in agent.static_pods().await {
        let pods = found.entry(name).or_default();
        pods.push(AdoptedPod { uid, content });
    }
    found
}

/// Records the sources' events, forever.
pub(super) async fn raise(mut events: mpsc::UnboundedReceiver<ManifestEvent>, recorder: Recorder) {
    while let Some(event) = events.recv().await {
        let kind = if event.reason.is_warning() {
            EventType::Warning
        } else {
            EventType::Normal
        };
        let subject = match event.pod {
            Some(name) => Subject::Pod {
                name,
                uid: event.uid,
                field_path: "".into(),
            },
            None => Subject::Manifest(event.origin),
        };
        recorder.record(subject, kind, event.reason.as_str(), &event.message);
    }
}
