//! The node as the local socket shows it, and the actions on its pods.
//!
//! [`LocalView`] implements the server's trait [`NodeView`]: boards of the kubelet become collections
//! of objects with resource versions, which clients list and watch (`publish.rs`). What clients ask of
//! a pod, such as a restart, is checked and recorded as an intent; the pod's own task acts on it.
//!
//! This crate calls the runtime for sessions and files only (`sessions.rs`, `files.rs`), never changes the host, and listens on
//! nothing: requests come from `rubelet-server`, whose types it fills in.
//!
//! A [`LocalView`] is made of all boards of an agent and of a runtime, too much for an example:
//! `tests/fixture.rs` makes and asks one. This is the line about the node that it shows:
//!
//! ```
//! use rubelet_node_state::{pod_board::PodBoard, runtime_state::RuntimeState};
//! use rubelet_view::{ClusterProblems, summary};
//!
//! let text = summary(&PodBoard::new(), &RuntimeState::default(), &ClusterProblems::none());
//! assert_eq!(text, "0/0 pods ready, waiting for the container runtime");
//! ```

mod act;
mod cluster_problems;
mod events;
mod files;
mod health;
mod lifecycle;
mod logs;
mod manifests;
mod net;
mod pod_shares;
mod pods;
mod publish;
mod running;
mod sessions;
mod stats;
mod system_logs;
#[cfg(test)]
mod tests;
mod why;

use std::{collections::BTreeMap, path::PathBuf, sync::Arc, time::Duration};

use async_trait::async_trait;
use bytes::Bytes;
use rubelet_api::pod::{Pod, PodSource};
use rubelet_audit::AuditLog;
use rubelet_base::PodUid;
use rubelet_node_state::{
    clock::Clock, events::Recorder, heartbeat::Heartbeat, intents::IntentBoard,
    metrics::NodeMetrics, node_ips::NodeIps, objects::ObjectSource, pod_board::PodBoard,
    runtime_state::RuntimeState,
};
use rubelet_probes::ProberHandle;
use rubelet_server::{
    ActionError, Collection, Expired, FilesAnswer, FilesRefusal, FilesRequest, Listing, LogError,
    LogRequest, LogStream, NetRefusal, NetRequest, NetStream, NodeView, PodAction, PodAnswer,
    PodRef, Resource, RunRequest, RunningPod, SessionError, SessionRequest, StatsRequest,
    SystemLog, Unhealthy, WatchStream, explanation::VolumeCopy,
};
use rubelet_sources::{desired::Desired, state::ManifestEdits, status::ManifestStatus};
use rubelet_streaming::SessionTarget;
use serde_json::Value;
use tokio::{
    sync::{Semaphore, watch},
    task::JoinSet,
};

pub use self::{
    cluster_problems::ClusterProblems,
    health::{stuck_loop, summary},
    lifecycle::{LifecycleBoard, PlegLifecycle},
    net::{Nameservers, NetworkFacts},
    sessions::SessionParts,
    stats::StatsParts,
};
use self::{
    pod_shares::PodShares,
    publish::{ExtraVersions, Follower},
};

/// Number of deletions that are kept for slow watchers.
const DELETIONS_KEPT: usize = 64;

/// The path of the log of a container of a pod, by its restart count.
pub type LogPath = Arc<dyn Fn(&Pod, &str, u32) -> PathBuf + Send + Sync>;

/// The containers of a pod whose images' volumes are being copied, by name.
pub type VolumeCopies = Arc<dyn Fn(&PodUid) -> BTreeMap<String, VolumeCopy> + Send + Sync>;

/// Dependencies of a view.
pub struct ViewParts {
    /// The pods of this node.
    pub pods: Arc<PodBoard>,
    /// Its events.
    pub recorder: Recorder,
    /// Lifecycle events of PLEG.
    pub lifecycle: LifecycleBoard,
    /// Operators' requests for pods.
    pub intents: IntentBoard,
    /// The objects that pods refer to.
    pub objects: Arc<dyn ObjectSource>,
    /// Reports of probes.
    pub prober: ProberHandle,
    /// The clock of the agent.
    pub clock: Clock,
    /// The manifests and the status of each.
    pub manifests: watch::Receiver<Arc<Vec<ManifestStatus>>>,
    /// The effect of an edit of a manifest on its pod.
    pub manifest_edits: ManifestEdits,
    /// The desired pods of each source.
    pub desired: Vec<watch::Receiver<Arc<Desired>>>,
    /// The state of the container runtime.
    pub runtime: watch::Receiver<RuntimeState>,
    /// Why the runtime counts as unavailable although its last status was good.
    pub pleg_problem: Arc<dyn Fn() -> Option<String> + Send + Sync>,
    /// Problems between the node and its cluster.
    pub cluster: ClusterProblems,
    /// The loops of the agent.
    pub heartbeats: Vec<(&'static str, Heartbeat)>,
    /// The metrics of the agent.
    pub metrics: Arc<NodeMetrics>,
    /// The audit log, if there is one.
    pub audit: Option<Arc<AuditLog>>,
    /// The runtime that serves sessions.
    pub sessions: SessionParts,
    /// Measures the node and its pods.
    pub stats: StatsParts,
    /// The expected network of pods.
    pub network: NetworkFacts,
    /// Paths of logs.
    pub log_path: LogPath,
    /// Volumes that the embedded runtime is filling.
    pub volume_copies: VolumeCopies,
    /// The name of the node.
    pub node_name: Arc<str>,
    /// The addresses of the node.
    pub node_ips: NodeIps,
    /// The effective configuration.
    pub config: Value,
    /// Settings of this configuration that the kubelet supports and this agent does not yet.
    pub not_yet: Option<String>,
    /// The first resource version; larger than those of earlier processes.
    pub first_version: u64,
}

/// The node as the server sees it.
pub struct LocalView {
    parts: ViewParts,
    pods: Arc<Collection>,
    events: Arc<Collection>,
    manifests: Arc<Collection>,
    lifecycle: lifecycle::LifecycleEvents,
    transfers: Arc<PodShares>,
    probes: Arc<Semaphore>,
}

impl LocalView {
    /// Makes the view; the tasks that keep it up to date go into `tasks`.
    pub fn start(parts: ViewParts, tasks: &mut JoinSet<()>) -> Arc<Self> {
        let collection = || Arc::new(Collection::new(parts.first_version, DELETIONS_KEPT));
        let (pods, events, manifests) = (collection(), collection(), collection());
        let pod_context = Arc::new(pods::PodContext {
            node_ips: parts.node_ips.clone(),
            intents: parts.intents.clone(),
            runtime: parts.runtime.clone(),
        });
        let intents = parts.intents.clone();
        let asked = ExtraVersions {
            versions: intents.versions(),
            version_of: Box::new(move |uid: &PodUid| intents.version_of(uid)),
        };
        let render_pod = move |entry| pods::object(entry, Arc::clone(&pod_context));
        let board = Arc::clone(&parts.pods);
        tasks.spawn(Follower::new(board, Arc::clone(&pods), Some(asked), render_pod).run());
        let node = Arc::clone(&parts.node_name);
        let render_event = move |event| events::object(event, Arc::clone(&node));
        let board = Arc::clone(parts.recorder.board());
        tasks.spawn(Follower::new(board, Arc::clone(&events), None, render_event).run());
        tasks.spawn(manifests::follow(
            parts.manifests.clone(),
            Arc::clone(&manifests),
        ));
        let board = Arc::clone(&parts.lifecycle);
        Arc::new(Self {
            lifecycle: lifecycle::LifecycleEvents::new(board, collection()),
            transfers: PodShares::new(files::TRANSFERS, files::TRANSFERS_OF_POD),
            probes: Arc::new(Semaphore::new(net::PROBES)),
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

    async fn system_log(&self, path: Vec<String>) -> Result<SystemLog, LogError> {
        system_logs::open(path).await
    }

    async fn act(&self, pod: &PodRef, action: PodAction) -> Result<PodAnswer, ActionError> {
        act::act(self, pod, action).await
    }

    async fn session(&self, request: &SessionRequest) -> Result<SessionTarget, SessionError> {
        sessions::target(&self.parts.pods, &self.parts.sessions, request).await
    }

    async fn run(&self, request: &RunRequest) -> Result<Bytes, SessionError> {
        sessions::run(&self.parts.pods, &self.parts.sessions, request).await
    }

    async fn files(&self, request: FilesRequest) -> Result<FilesAnswer, FilesRefusal> {
        let parts = &self.parts;
        files::files(&parts.pods, &parts.sessions, &self.transfers, request).await
    }

    async fn net(&self, request: NetRequest) -> Result<NetStream, NetRefusal> {
        let parts = &self.parts;
        net::net(parts, &self.probes, request).await
    }

    async fn stats(&self, request: StatsRequest) -> String {
        self.parts
            .stats
            .document(request, &self.parts.node_name)
            .await
    }

    fn session_idle_timeout(&self) -> Duration {
        self.parts.sessions.idle_timeout
    }

    fn config(&self) -> Value {
        self.parts.config.clone()
    }

    fn syncloop(&self) -> Result<(), Unhealthy> {
        stuck_loop(&self.parts.heartbeats).map_or(Ok(()), |stuck| Err(Unhealthy(stuck)))
    }

    fn ready(&self) -> Result<(), Unhealthy> {
        if let Some(problem) = (self.parts.pleg_problem)() {
            return Err(Unhealthy(problem));
        }
        let runtime = self.parts.runtime.borrow();
        if let Some(problem) = &runtime.problem {
            return Err(Unhealthy(problem.to_string()));
        }
        if !runtime.answered {
            return Err(Unhealthy("waiting for the container runtime".to_owned()));
        }
        let mut sources = self.parts.desired.iter().map(watch::Receiver::borrow);
        if let Some(waits) = sources.find(|source| !source.sources_ready()) {
            let api = waits.waiting_for.contains(&PodSource::Api);
            let problem = self.parts.cluster.api_server.borrow().clone();
            return Err(Unhealthy(match problem {
                Some(problem) if api => format!("waiting for the API server: {problem}"),
                None if api => "waiting for the API server".to_owned(),
                _ => "waiting for a manifest source".to_owned(),
            }));
        }
        Ok(())
    }

    fn metrics(&self) -> String {
        self.parts.metrics.render()
    }

    fn summary(&self) -> String {
        summary(
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
