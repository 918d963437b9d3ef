//! What the server sees of the node: boards of the kubelet as collections of objects.

mod act;
mod events;
mod lifecycle;
mod logs;
mod manifests;
mod pods;
mod publish;
mod running;
#[cfg(test)]
mod tests;
mod why;

use std::{path::PathBuf, sync::Arc};

use async_trait::async_trait;
use rubelet_api::pod::{Pod, PodSource};
use rubelet_base::PodUid;
use rubelet_kubelet::{
    clock::Clock, events::Recorder, heartbeat::Heartbeat, intents::IntentBoard,
    metrics::NodeMetrics, node_ips::NodeIps, objects::ObjectSource, pod_task::PodBoard,
    prober::ProberHandle, runtime_state::RuntimeState,
};
use rubelet_server::{
    ActionError, Collection, Expired, Listing, LogError, LogRequest, LogStream, NodeView,
    PodAction, PodAnswer, PodRef, Resource, RunningPod, WatchStream, audit::AuditLog,
};
use rubelet_sources::{desired::Desired, status::ManifestStatus};
use serde_json::Value;
use tokio::{sync::watch, task::JoinSet};

pub(crate) use self::lifecycle::{LifecycleBoard, OfPleg};
use self::publish::{Beside, Follower};
use crate::run::notify;

/// So many deletions are remembered for watchers that are slow.
const DELETIONS_KEPT: usize = 64;

/// Where the log of a container of a pod is, by its restart count.
pub(crate) type LogPath = Arc<dyn Fn(&Pod, &str, u32) -> PathBuf + Send + Sync>;

/// What a view is made from.
pub(crate) struct ViewParts {
    pub(crate) pods: Arc<PodBoard>,
    pub(crate) recorder: Recorder,
    pub(crate) lifecycle: LifecycleBoard,
    pub(crate) intents: IntentBoard,
    pub(crate) objects: Arc<dyn ObjectSource>,
    pub(crate) prober: ProberHandle,
    pub(crate) clock: Clock,
    pub(crate) manifests: watch::Receiver<Arc<Vec<ManifestStatus>>>,
    pub(crate) desired: Vec<watch::Receiver<Arc<Desired>>>,
    pub(crate) runtime: watch::Receiver<RuntimeState>,
    /// Why the runtime counts as gone although its last answer was good.
    pub(crate) silence: Arc<dyn Fn() -> Option<String> + Send + Sync>,
    /// What is wrong on the way to the cluster.
    pub(crate) cluster: notify::ClusterTrouble,
    pub(crate) heartbeats: Vec<(&'static str, Heartbeat)>,
    pub(crate) metrics: Arc<NodeMetrics>,
    pub(crate) audit: Option<Arc<AuditLog>>,
    pub(crate) log_path: LogPath,
    pub(crate) node_name: Arc<str>,
    pub(crate) node_ips: NodeIps,
    pub(crate) config: Value,
    /// What the kubelet does with this configuration and this agent does not yet.
    pub(crate) not_yet: Option<String>,
    /// Versions of this process are larger than those of earlier ones.
    pub(crate) first_version: u64,
}

/// The node as the server sees it.
pub(crate) struct LocalView {
    parts: ViewParts,
    pods: Arc<Collection>,
    events: Arc<Collection>,
    manifests: Arc<Collection>,
    lifecycle: lifecycle::LifecycleEvents,
}

impl LocalView {
    /// Makes the view; the tasks that keep it up to date go into `tasks`.
    pub(crate) fn start(parts: ViewParts, tasks: &mut JoinSet<()>) -> Arc<Self> {
        let collection = || Arc::new(Collection::new(parts.first_version, DELETIONS_KEPT));
        let (pods, events, manifests) = (collection(), collection(), collection());
        let surroundings = Arc::new(pods::Surroundings {
            node_ips: parts.node_ips.clone(),
            intents: parts.intents.clone(),
            runtime: parts.runtime.clone(),
        });
        let intents = parts.intents.clone();
        let asked = Beside {
            versions: intents.versions(),
            version_of: Box::new(move |uid: &PodUid| intents.version_of(uid)),
        };
        let draw_pod = move |entry| pods::object(entry, Arc::clone(&surroundings));
        let board = Arc::clone(&parts.pods);
        tasks.spawn(Follower::new(board, Arc::clone(&pods), Some(asked), draw_pod).run());
        let node = Arc::clone(&parts.node_name);
        let draw_event = move |event| events::object(event, Arc::clone(&node));
        let board = Arc::clone(parts.recorder.board());
        tasks.spawn(Follower::new(board, Arc::clone(&events), None, draw_event).run());
        tasks.spawn(manifests::follow(
            parts.manifests.clone(),
            Arc::clone(&manifests),
        ));
        let board = Arc::clone(&parts.lifecycle);
        Arc::new(Self {
            lifecycle: lifecycle::LifecycleEvents::new(board, collection()),
            parts,
            pods,
            events,
            manifests,
        })
    }

    fn collection(&self, resource: Resource) -> &Arc<Collection> {
        match resource {
            Resource::Pods => &self.pods,
            Resource::Events => &self.events,
            Resource::Manifests => &self.manifests,
            Resource::LifecycleEvents => self.lifecycle.collection(),
        }
    }
}

#[async_trait]
impl NodeView for LocalView {
    fn list(&self, resource: Resource) -> Listing {
        self.collection(resource).listing()
    }

    fn watch(&self, resource: Resource, since: u64) -> Result<WatchStream, Expired> {
        self.collection(resource).watch(since)
    }

    async fn container_log(&self, request: LogRequest) -> Result<LogStream, LogError> {
        logs::open(&self.parts.pods, &self.parts.log_path, request).await
    }

    async fn act(&self, pod: &PodRef, action: PodAction) -> Result<PodAnswer, ActionError> {
        act::act(self, pod, action).await
    }

    fn config(&self) -> Value {
        self.parts.config.clone()
    }

    fn syncloop(&self) -> Result<(), String> {
        notify::stuck(&self.parts.heartbeats).map_or(Ok(()), Err)
    }

    fn ready(&self) -> Result<(), String> {
        if let Some(silence) = (self.parts.silence)() {
            return Err(silence);
        }
        let runtime = self.parts.runtime.borrow();
        if let Some(problem) = &runtime.problem {
            return Err(problem.to_string());
        }
        if !runtime.answered {
            return Err("waiting for the container runtime".to_owned());
        }
        let mut sources = self.parts.desired.iter().map(watch::Receiver::borrow);
        if let Some(waits) = sources.find(|source| !source.sources_ready()) {
            let api = waits.waiting_for.contains(&PodSource::Api);
            let problem = self.parts.cluster.api_server.borrow().clone();
            return Err(match problem {
                Some(problem) if api => format!("waiting for the API server: {problem}"),
                None if api => "waiting for the API server".to_owned(),
                _ => "waiting for a manifest source".to_owned(),
            });
        }
        Ok(())
    }

    fn metrics(&self) -> String {
        self.parts.metrics.render()
    }

    fn summary(&self) -> String {
        notify::summary(
            &self.parts.pods,
            &self.parts.runtime.borrow(),
            &self.parts.cluster,
        )
    }

    fn notices(&self) -> Vec<(&'static str, String)> {
        let refused = self.parts.metrics.http.refused_connections();
        let refused: Vec<String> = refused
            .iter()
            .map(|(which, count)| format!("{count} {which}"))
            .collect();
        let refused = (!refused.is_empty()).then(|| refused.join(", "));
        let audit = self.parts.audit.as_ref().and_then(|log| log.problem());
        let unread = self.parts.cluster.unread();
        let not_yet = self.parts.not_yet.clone();
        [
            ("audit log", audit),
            ("refused connections", refused),
            ("not yet", not_yet),
        ]
        .into_iter()
        .filter_map(|(name, text)| Some((name, text?)))
        .chain(unread.into_iter().map(|field| ("unread", field)))
        .collect()
    }

    fn running_pods(&self) -> Vec<RunningPod> {
        running::pods(&self.parts.pods)
    }

    fn probe_metrics(&self) -> String {
        self.parts.prober.metrics()
    }
}
