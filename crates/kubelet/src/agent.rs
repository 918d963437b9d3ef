//! All tasks of the node, started together.

use std::{sync::Arc, time::Duration};

use rubelet_base::{PodName, PodUid};
use rubelet_cri::{ImageService, RuntimeService};
use rubelet_image_pull::{
    image_access::ImageAccess,
    images::{ImagePuller, PullParallelism},
    node_logins::NodeLogins,
};
use rubelet_node_state::{
    board::Board, clock::Clock, cluster_view::ClusterView, events::Recorder, heartbeat::Heartbeat,
    intents::IntentBoard, metrics::NodeMetrics, node_ips::NodeIps, objects::ObjectSource,
    pod_board::PodBoard, runtime_state::RuntimeState, throttle::Throttle,
};
use rubelet_pleg::{PlegHandle, PlegSettings, PlegTask, RuntimePod, processes::Processes};
use rubelet_pod_plan::PlanSettings;
use rubelet_probes::{NetProbe, ProberHandle, ProberTask};
use rubelet_sources::desired::Desired;
use tokio::{sync::watch, task::JoinSet, time::timeout};

use crate::{
    drain::Drain,
    host_ports::HostPorts,
    image_collection::{ImageCollection, ImageCollectionSettings},
    log_rotation::{LogRotation, LogRotationSettings},
    pod_host::PodHost,
    pod_task::PodContext,
    pods::PodTable,
    quarantine,
    records::RecordWriter,
    releases::Releases,
    runtime_watch::watch_runtime,
};

/// Pods that each source wants to run, level-triggered.
pub type PodSources = Vec<watch::Receiver<Arc<Desired>>>;

/// How long a stop of the agent waits for container starts that are under way.
const DRAIN: Duration = Duration::from_secs(10);

/// What a node is made from.
pub struct AgentParts {
    /// The runtime.
    pub runtime: Arc<dyn RuntimeService>,
    /// Its image service.
    pub images: Arc<dyn ImageService>,
    /// Where the runtime is, for messages.
    pub endpoint: Arc<str>,
    /// The name that it reported last; empty if it never did.
    pub runtime_name: Arc<str>,
    /// The host.
    pub host: Arc<dyn PodHost>,
    /// Wall time.
    pub clock: Clock,
    /// What survives a restart.
    pub records: RecordWriter,
    /// Name of the node.
    pub node_name: Arc<str>,
    /// Addresses of the node.
    pub node_ips: NodeIps,
    /// Settings of plans. Their addresses of the node are those of `node_ips`.
    pub plan: PlanSettings,
    /// Settings of PLEG.
    pub pleg: PlegSettings,
    /// Reports exits of container processes, where the kernel is watched for them.
    pub processes: Option<Arc<dyn Processes>>,
    /// How many images are pulled at the same time.
    pub pulls: PullParallelism,
    /// How many sandboxes and containers the runtime starts at the same time.
    pub starts_at_once: usize,
    /// How many it stops at the same time, and how many it removes. A stop waits more than it works.
    pub stops_at_once: usize,
    /// When logs of containers are rotated; `None` is never.
    pub log_rotation: Option<LogRotationSettings>,
    /// When unused images are removed; `None` is never.
    pub image_collection: Option<ImageCollectionSettings>,
    /// Network probes and hooks.
    pub net: Arc<dyn NetProbe>,
    /// Intents of operators.
    pub intents: IntentBoard,
    /// The cluster, or [`rubelet_node_state::cluster_view::NoCluster`].
    pub cluster: Arc<dyn ClusterView>,
    /// Credentials for registries that all pods may use.
    pub logins: NodeLogins,
    /// Who may use images that are present.
    pub image_access: ImageAccess,
    /// What pods read from the API server, or [`rubelet_node_state::objects::NoObjects`].
    pub objects: Arc<dyn ObjectSource>,
    /// Where everything that happens is counted.
    pub metrics: Arc<NodeMetrics>,
}

/// A node at work. Its tasks end when it is dropped; pods continue.
pub struct Agent {
    /// Statuses of pods.
    pub pods: Arc<PodBoard>,
    /// Events.
    pub recorder: Recorder,
    /// The runtime as last seen.
    pub runtime_state: watch::Receiver<RuntimeState>,
    /// Loops that must go round, by name.
    pub heartbeats: Vec<(&'static str, Heartbeat)>,
    context: Arc<PodContext>,
    node_name: Arc<str>,
    table_heartbeat: Heartbeat,
    /// Started with the pods, whose images it keeps.
    image_collection: Option<(ImageCollectionSettings, Arc<dyn ImageService>)>,
    tasks: JoinSet<()>,
}

impl Agent {
    /// Starts everything but the pods: those come with [`Agent::run_pods`].
    #[must_use]
    pub fn start(parts: AgentParts, recorder: Recorder) -> Self {
        let pods = Arc::new(Board::new());
        let releases = Releases::new();
        let (state_sender, runtime_state) = watch::channel(RuntimeState {
            name: parts.runtime_name,
            ..RuntimeState::default()
        });
        let (pleg_heartbeat, table_heartbeat) = (Heartbeat::new(), Heartbeat::new());
        let (pleg_task, pleg) = PlegTask::new(
            Arc::clone(&parts.runtime),
            parts.pleg,
            parts.processes,
            pleg_heartbeat.clone(),
            parts.clock.clone(),
            Arc::clone(&parts.metrics),
        );
        let (prober_task, prober) = ProberTask::new(
            Arc::clone(&parts.runtime),
            Arc::clone(&parts.net),
            recorder.clone(),
            parts.clock.clone(),
        );
        let image_collection = parts
            .image_collection
            .map(|settings| (settings, Arc::clone(&parts.images)));
        let context = Arc::new(PodContext {
            runtime: Arc::clone(&parts.runtime),
            images: ImagePuller::new(
                parts.images,
                parts.pulls,
                recorder.clone(),
                Arc::clone(&parts.objects),
                parts.logins,
                parts.image_access,
            ),
            pleg,
            host: parts.host,
            recorder: recorder.clone(),
            clock: parts.clock,
            board: Arc::clone(&pods),
            records: parts.records.clone(),
            node_ips: parts.node_ips,
            settings: parts.plan,
            starts: Throttle::new(parts.starts_at_once),
            stops: Throttle::new(parts.stops_at_once),
            removals: Throttle::new(parts.stops_at_once),
            runtime_state: runtime_state.clone(),
            host_ports: HostPorts::new(releases.clone()),
            releases,
            drain: Drain::new(),
            prober,
            net: parts.net,
            intents: parts.intents,
            cluster: parts.cluster,
            objects: parts.objects,
            metrics: parts.metrics,
        });
        let mut tasks = JoinSet::new();
        if let Some(settings) = parts.log_rotation {
            tasks.spawn(LogRotation::new(settings, &context).run());
        }
        tasks.spawn(watch_runtime(
            parts.runtime,
            parts.endpoint,
            state_sender,
            context.pleg.clone(),
        ));
        tasks.spawn(quarantine::warn(
            context.pleg.clone(),
            Arc::clone(&pods),
            recorder.clone(),
        ));
        tasks.spawn(quarantine::warn_of_slowness(
            context.pleg.clone(),
            Arc::clone(&parts.node_name),
            recorder.clone(),
        ));
        tasks.spawn(pleg_task.run());
        tasks.spawn(prober_task.run());
        tasks.spawn(relist_when_ready(
            context.pleg.clone(),
            runtime_state.clone(),
        ));
        tasks.spawn(parts.records.run());
        Self {
            pods,
            recorder,
            runtime_state,
            heartbeats: vec![
                ("pleg", pleg_heartbeat),
                ("syncloop", table_heartbeat.clone()),
            ],
            context,
            node_name: parts.node_name,
            table_heartbeat,
            image_collection,
            tasks,
        }
    }

    /// Observations, for those who wait for the first relist.
    #[must_use]
    pub fn pleg(&self) -> &PlegHandle {
        &self.context.pleg
    }

    /// Probes, for explanations of a pod's state.
    #[must_use]
    pub fn prober(&self) -> &ProberHandle {
        &self.context.prober
    }

    /// Intents of operators.
    #[must_use]
    pub fn intents(&self) -> &IntentBoard {
        &self.context.intents
    }

    /// The pods of manifests that the runtime holds: their names, UIDs, and what is recorded of the
    /// manifests that they ran by last.
    pub async fn static_pods(&self) -> Vec<(PodName, PodUid, Option<Box<str>>)> {
        let pods = Arc::clone(&self.context.pleg.relists().borrow().pods);
        let is_static = |pod: &&RuntimePod| matches!(pod.source.as_deref(), Some("file" | "http"));
        let mut found = Vec::new();
        for pod in pods.iter().filter(is_static) {
            let record = self.context.records.load(&pod.uid).await;
            let content = record.map(|record| record.content);
            let content = content.filter(|content| !content.is_empty());
            found.push((pod.name.clone(), pod.uid.clone(), content));
        }
        found
    }

    /// Waits for the first complete list of the runtime, but not longer than `limit`.
    pub async fn first_relist(&self, limit: Duration) {
        let mut relists = self.context.pleg.relists();
        let listed = relists.wait_for(|state| state.at.is_some());
        // Either way the sources start: with the runtime away, pods wait for it.
        let _ = timeout(limit, listed).await;
    }

    /// Starts to keep the pods of these sources running.
    pub fn run_pods(&mut self, sources: PodSources) {
        if let Some((settings, images)) = self.image_collection.take() {
            let collection = ImageCollection {
                settings,
                runtime: Arc::clone(&self.context.runtime),
                images,
                pods: Arc::clone(&self.pods),
                sources: sources.clone(),
                recorder: self.recorder.clone(),
                metrics: Arc::clone(&self.context.metrics),
                node_name: Arc::clone(&self.node_name),
            };
            self.tasks.spawn(collection.run());
        }
        let table = PodTable::new(
            Arc::clone(&self.context),
            sources,
            Arc::clone(&self.node_name),
            self.table_heartbeat.clone(),
        );
        self.tasks.spawn(table.run());
    }

    /// Resolves when a task of the node died, with the known details.
    pub async fn failed(&mut self) -> String {
        match self.tasks.join_next().await {
            Some(Err(error)) => format!("a task of the node died: {error}"),
            Some(Ok(())) => "a task of the node ended".to_owned(),
            None => std::future::pending().await,
        }
    }

    /// Stops all tasks and writes what is not written yet. Starts that are under way may end first.
    /// Containers continue.
    pub async fn stop(mut self) {
        // Before the tasks are aborted, which would cancel calls that are under way.
        self.context.drain.shut(DRAIN).await;
        self.tasks.abort_all();
        while self.tasks.join_next().await.is_some() {}
        // The task that writes records was aborted with the others.
        self.context.records.flush().await;
    }
}

/// Does not let PLEG wait for its next try when the runtime is back.
async fn relist_when_ready(pleg: PlegHandle, mut state: watch::Receiver<RuntimeState>) {
    loop {
        let down = state.wait_for(|state| !state.is_ready()).await.is_ok();
        let ready = down && state.wait_for(RuntimeState::is_ready).await.is_ok();
        if !ready {
            // The agent stops.
            return std::future::pending().await;
        }
        pleg.relist_now();
    }
}
