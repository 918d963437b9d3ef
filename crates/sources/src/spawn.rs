//! Starts the sources: one task scans the directory, one polls the URL, one evaluates the results.

use std::{path::PathBuf, sync::Arc, time::Duration};

use http::{HeaderMap, HeaderName, HeaderValue};
use jiff::Timestamp;
use rubelet_api::pod::PodSource;
use tokio::{
    sync::{mpsc, watch},
    task::JoinSet,
};

use crate::{
    desired::Desired,
    directory,
    state::{AdoptedPods, Changes, LastGoodPod, ManifestEdits, Observation, SourceState},
    status::{EventReason, ManifestEvent, ManifestStatus, Reason},
    url::{Roots, TargetError, UrlSource},
};

/// Minimum interval.
const MIN_INTERVAL: Duration = Duration::from_millis(100);

/// The configuration of the sources.
#[derive(Debug, Clone, Default)]
pub struct SourcesConfig {
    /// This node's name, which becomes part of the pods' names.
    pub node_name: String,
    /// `staticPodPath`.
    pub file: Option<FileConfig>,
    /// `staticPodURL`.
    pub url: Option<UrlConfig>,
    /// The effect of a manifest's edit on its pod.
    pub edits: ManifestEdits,
    /// Pods that run already.
    pub adopted: AdoptedPods,
    /// The last value of [`SourcesHandle::held`] of the previous run.
    pub held: Vec<LastGoodPod>,
}

/// A manifest directory or a single file.
#[derive(Debug, Clone)]
pub struct FileConfig {
    /// The directory or file, which may be created later.
    pub path: PathBuf,
    /// `fileCheckFrequency`: the interval of scans without events.
    pub check_frequency: Duration,
}

/// A manifest URL.
#[derive(Debug, Clone)]
pub struct UrlConfig {
    /// An http or https URL; a user and password in it are sent as basic authorization.
    pub url: String,
    /// `staticPodURLHeader`: names and values; a name may come several times.
    pub headers: Vec<(String, String)>,
    /// `httpCheckFrequency`: the interval of fetches.
    pub check_frequency: Duration,
    /// Trusted certificate authorities for https.
    pub roots: Roots,
}

/// A source that can't be watched as configured.
#[derive(Debug, thiserror::Error)]
pub enum SourcesError {
    /// The URL is invalid.
    #[error("invalid manifest URL")]
    Url(#[source] TargetError),
    /// A header is invalid.
    #[error("invalid manifest URL header {0:?}: its name or value is not allowed in HTTP")]
    Header(String),
}

/// The outputs of the running sources. Dropping it stops them.
#[derive(Debug)]
pub struct SourcesHandle {
    /// The pods to run; compare with [`crate::desired::diff`].
    pub desired: watch::Receiver<Arc<Desired>>,
    /// The status of each manifest.
    pub manifests: watch::Receiver<Arc<Vec<ManifestStatus>>>,
    /// Definitions to keep across a restart of the agent; changes only when a manifest or a source
    /// becomes unusable or usable.
    pub held: watch::Receiver<Arc<Vec<LastGoodPod>>>,
    /// Events for the operator. At most one for each change of a manifest and pod.
    pub events: mpsc::UnboundedReceiver<ManifestEvent>,
    /// The watching tasks, which end when this is dropped.
    pub tasks: JoinSet<()>,
}

/// Starts the sources. `clock` returns the wall time for statuses.
///
/// # Errors
/// A URL or header is invalid.
pub fn spawn(
    config: SourcesConfig,
    clock: impl Fn() -> Timestamp + Send + 'static,
) -> Result<SourcesHandle, SourcesError> {
    let SourcesConfig {
        node_name,
        file,
        url,
        edits,
        adopted,
        held,
    } = config;
    let url = match url {
        None => None,
        Some(config) => {
            let headers = headers(&config.headers)?;
            let source = UrlSource::new(&config.url, headers, config.roots);
            Some((
                source.map_err(SourcesError::Url)?,
                config.check_frequency.max(MIN_INTERVAL),
            ))
        }
    };
    let mut configured = Vec::new();
    configured.extend(file.as_ref().map(|_| PodSource::File));
    configured.extend(url.as_ref().map(|_| PodSource::Http));
    let state = SourceState::new(&node_name, edits, &configured, adopted, &held, clock());

    let mut tasks = JoinSet::new();
    // One scan waits here until the previous one is evaluated.
    let (observed, observations) = mpsc::channel(1);
    if let Some(FileConfig {
        path,
        check_frequency,
    }) = file
    {
        tasks.spawn(directory::watch(
            path,
            check_frequency.max(MIN_INTERVAL),
            observed.clone(),
        ));
    }
    if let Some((source, every)) = url {
        tasks.spawn(source.watch(every, observed.clone()));
    }
    let (desired, desired_out) = watch::channel(Arc::clone(state.desired()));
    let (manifests, manifests_out) = watch::channel(Arc::clone(state.statuses()));
    let (held, held_out) = watch::channel(Arc::clone(state.held()));
    let (events, events_out) = mpsc::unbounded_channel();
    let outputs = Outputs {
        desired,
        manifests,
        held,
        events,
        _observed: observed,
    };
    tasks.spawn(decide(state, clock, observations, outputs));
    Ok(SourcesHandle {
        desired: desired_out,
        manifests: manifests_out,
        held: held_out,
        events: events_out,
        tasks,
    })
}

struct Outputs {
    desired: watch::Sender<Arc<Desired>>,
    manifests: watch::Sender<Arc<Vec<ManifestStatus>>>,
    held: watch::Sender<Arc<Vec<LastGoodPod>>>,
    events: mpsc::UnboundedSender<ManifestEvent>,
    /// Keeps the evaluating task waiting if no source is configured.
    _observed: mpsc::Sender<Observation>,
}

async fn decide(
    mut state: SourceState,
    clock: impl Fn() -> Timestamp + Send,
    mut observations: mpsc::Receiver<Observation>,
    outputs: Outputs,
) {
    while let Some(observation) = observations.recv().await {
        let Changes {
            desired,
            statuses,
            held,
            events,
        } = state.apply(observation, clock());
        // Events explain a change, so they come before it.
        if held {
            outputs.held.send_replace(Arc::clone(state.held()));
        }
        if statuses {
            outputs.manifests.send_replace(Arc::clone(state.statuses()));
        }
        if desired {
            outputs.desired.send_replace(Arc::clone(state.desired()));
        }
        for event in events {
            match event.reason {
                // Already logged, with a limited rate.
                _ if event.cause == Some(Reason::Unreachable) => {}
                EventReason::FailedManifest => tracing::warn!("{}", event.message),
                EventReason::ManifestRecovered => tracing::info!("{}", event.message),
            }
            // There is no receiver while the agent shuts down.
            let _unheard = outputs.events.send(event);
        }
    }
}

fn headers(list: &[(String, String)]) -> Result<HeaderMap, SourcesError> {
    let mut map = HeaderMap::new();
    for (name, value) in list {
        let bad = || SourcesError::Header(name.clone());
        let name: HeaderName = name.parse().map_err(|_| bad())?;
        let mut value = HeaderValue::from_str(value).map_err(|_| bad())?;
        // Values may be secrets and must not show up in logs.
        value.set_sensitive(true);
        map.append(name, value);
    }
    Ok(map)
}

#[cfg(test)]
mod tests;
