//! All tasks of the node, started together.

use std::{sync::Arc, time::Duration};

use rubelet_base::{PodName, PodUid};
use rubelet_cri::{ImageService, RuntimeService};
use rubelet_image_pull::{
    image_access::ImageAccess,
    images::{ImagePuller, PullParallelism},
    node_logins::NodeLogins,
    pull_rate::PullRate,
};
use rubelet_node_plan::{eviction::Pressure, node_allocatable::EnforcementError};
use rubelet_node_state::{
    board::Board, clock::Clock, cluster_view::ClusterView, events::Recorder, heartbeat::Heartbeat,
    intents::IntentBoard, metrics::NodeMetrics, node_ips::NodeIps, objects::ObjectSource,
    pod_board::PodBoard, runtime_state::RuntimeState, shutdown_state::ShutdownState,
    throttle::Throttle,
};
use rubelet_pleg::{PlegHandle, PlegSettings, PlegTask, RuntimePod, processes::Processes};
use rubelet_pod_plan::PlanSettings;
use rubelet_probes::{NetProbe, ProberHandle, ProberTask};
use tokio::{sync::watch, task::JoinSet, time::timeout};

use crate::{
    PodSources,
    drain::Drain,
    eviction::{EvictionParts, EvictionSettings, EvictionTask},
    host_ports::HostPorts,
    image_collection::{ImageCollection, ImageCollectionSettings, ImageReclaimer},
    local_storage::{LocalStorageSettings, LocalStorageTask},
    log_rotation::{LogRotation, LogRotationSettings},
    node_allocatable::{FirstEnforcement, NodeAllocatable, NodeCgroups},
    node_shutdown::{NodeShutdown, ShutdownSettings},
    pod_host::PodHost,
    pod_task::PodContext,
    pods::PodTable,
    quarantine,
    records::RecordWriter,
    releases::Releases,
    runtime_watch::watch_runtime,
};

/// Longest wait for container starts in progress when the agent stops.
const DRAIN: Duration = Duration::from_secs(10);

/// The parts and settings of an agent.
pub struct AgentParts {
    /// The runtime.
    pub runtime: Arc<dyn RuntimeService>,
    /// Its image service.
    pub images: Arc<dyn ImageService>,
    /// Endpoint of the runtime, for messages.
    pub endpoint: Arc<str>,
    /// Name that the runtime reported last; empty if it never did.
    pub runtime_name: Arc<str>,
    /// The host.
    pub host: Arc<dyn PodHost>,
    /// Wall time.
    pub clock: Clock,
    /// Records that survive a restart.
    pub records: RecordWriter,
    /// Name of the node.
    pub node_name: Arc<str>,
    /// Addresses of the node.
    pub node_ips: NodeIps,
    /// Settings of plans, with the addresses of `node_ips`.
    pub plan: PlanSettings,
    /// Settings of PLEG.
    pub pleg: PlegSettings,
    /// Reports exits of container processes; `None` if the kernel is not watched for them.
    pub processes: Option<Arc<dyn Processes>>,
    /// Maximum number of concurrent image pulls.
    pub pulls: PullParallelism,
    /// The rate limit of image pulls.
    pub pull_rate: PullRate,
    /// Maximum number of sandboxes and containers that the runtime starts at the same time.
    pub starts_at_once: usize,
    /// Maximum number of concurrent stops, and of concurrent removals. A stop mostly waits.
    pub stops_at_once: usize,
    /// Settings of log rotation; `None` disables it.
    pub log_rotation: Option<LogRotationSettings>,
    /// Settings of image garbage collection; `None` disables it.
    pub image_collection: Option<ImageCollectionSettings>,
    /// Settings of eviction; `None` disables it.
    pub eviction: Option<EvictionSettings>,
    /// Settings of graceful shutdowns of the node; `None` disables them.
    pub shutdown: Option<ShutdownSettings>,
    /// Limits the cgroups of the node; `None` on a node whose pods have no cgroups of their own.
    pub node_cgroups: Option<Arc<dyn NodeCgroups>>,
    /// Settings of the limits of local storage; `None` disables them.
    pub local_storage: Option<LocalStorageSettings>,
    /// Network probes and hooks.
    pub net: Arc<dyn NetProbe>,
    /// Intents of operators.
    pub intents: IntentBoard,
    /// The cluster, or [`rubelet_node_state::cluster_view::NoCluster`].
    pub cluster: Arc<dyn ClusterView>,
    /// Credentials for registries that all pods may use.
    pub logins: NodeLogins,
    /// Access of pods to images that are present.
    pub image_access: ImageAccess,
    /// Objects of pods in the API server, or [`rubelet_node_state::objects::NoObjects`].
    pub objects: Arc<dyn ObjectSource>,
    /// Metrics of the node.
    pub metrics: Arc<NodeMetrics>,
}

/// A running agent. Its tasks are aborted when it is dropped; pods continue.
pub struct Agent {
    /// Statuses of pods.
    pub pods: Arc<PodBoard>,
    /// Events.
    pub recorder: Recorder,
    /// The last known state of the runtime.
    pub runtime_state: watch::Receiver<RuntimeState>,
    /// Pressure on the resources of the node.
    pub pressure: watch::Receiver<Pressure>,
    /// Whether the node shuts down.
    pub shutdown: watch::Receiver<ShutdownState>,
    /// Heartbeats of the main loops, by name.
    pub heartbeats: Vec<(&'static str, Heartbeat)>,
    context: Arc<PodContext>,
    node_name: Arc<str>,
    table_heartbeat: Heartbeat,
    images: Arc<dyn ImageService>,
    node_allocatable: FirstEnforcement,
    /// Started with the pods, as it must know their images.
    image_collection: Option<ImageCollectionSettings>,
    /// Started with the pods, which it may evict.
    eviction: Option<(EvictionSettings, watch::Sender<Pressure>)>,
    /// Started with the pods, which it ends.
    node_shutdown: Option<(ShutdownSettings, watch::Sender<ShutdownState>)>,
    /// Started with the pods, which it may evict.
    local_storage: Option<LocalStorageSettings>,
    tasks: JoinSet<()>,
}

impl Agent {
    /// Starts all tasks but those of pods, which [`Agent::run_pods`] starts.
    #[must_use]
    pub fn start(parts: AgentParts, recorder: Recorder) -> Self {
        let (pods, releases) = (Arc::new(Board::new()), Releases::new());
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
        let (pressure_sender, pressure) = watch::channel(Pressure::default());
        let (shutdown_sender, shutdown) = watch::channel(initial_shutdown(parts.shutdown.as_ref()));
        let images = Arc::clone(&parts.images);
        let context = Arc::new(PodContext {
            runtime: Arc::clone(&parts.runtime),
            images: ImagePuller::new(
                parts.images,
                parts.pulls,
                recorder.clone(),
                Arc::clone(&parts.objects),
                parts.logins,
                parts.image_access,
                Arc::clone(&parts.metrics),
            )
            .with_rate(parts.pull_rate),
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
            shutdown: shutdown.clone(),
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
        let (cgroups, node_name) = (parts.node_cgroups, &parts.node_name);
        let node_allocatable = enforce_node_allocatable(&mut tasks, cgroups, &context, node_name);
        if let Some(settings) = parts.log_rotation {
            tasks.spawn(LogRotation::new(settings, &context).run());
        }
        let pleg = context.pleg.clone();
        tasks.spawn(watch_runtime(
            parts.runtime,
            parts.endpoint,
            state_sender,
            pleg,
        ));
        warn_of_runtime(&mut tasks, &context, &parts.node_name);
        tasks.spawn(pleg_task.run());
        tasks.spawn(prober_task.run());
        let pleg = context.pleg.clone();
        tasks.spawn(relist_when_ready(pleg, runtime_state.clone()));
        tasks.spawn(parts.records.run());
        Self {
            pods,
            recorder,
            runtime_state,
            pressure,
            shutdown,
            heartbeats: vec![
                ("pleg", pleg_heartbeat),
                ("syncloop", table_heartbeat.clone()),
            ],
            context,
            node_name: parts.node_name,
            table_heartbeat,
            images,
            node_allocatable,
            image_collection: parts.image_collection,
            eviction: parts.eviction.map(|settings| (settings, pressure_sender)),
            node_shutdown: parts.shutdown.map(|settings| (settings, shutdown_sender)),
            local_storage: parts.local_storage,
            tasks,
        }
    }

    /// PLEG, to wait for the first relist and for observations.
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

    /// The pods of manifests in the runtime: name, UID, and the recorded hash of the manifest that
    /// the pod ran last.
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
        // Also after a timeout: the sources start, and pods wait for the runtime.
        let _ = timeout(limit, listed).await;
    }

    /// Waits until the limits of the node's cgroups are in force, but not longer than `limit`.
    ///
    /// # Errors
    /// What is reserved for others can't be enforced, so the agent must not start pods.
    pub async fn node_allocatable(&self, limit: Duration) -> Result<(), EnforcementError> {
        let ended = self.node_allocatable.wait(limit).await;
        ended.map_err(EnforcementError)
    }

    /// Starts the pod table with these sources.
    pub fn run_pods(&mut self, sources: PodSources) {
        let mut image_reclaimer = None;
        if let Some(settings) = self.image_collection.take() {
            let (reclaimer, requests) = ImageReclaimer::new();
            image_reclaimer = Some(reclaimer);
            let collection = ImageCollection {
                settings,
                runtime: Arc::clone(&self.context.runtime),
                images: Arc::clone(&self.images),
                pods: Arc::clone(&self.pods),
                sources: sources.clone(),
                recorder: self.recorder.clone(),
                metrics: Arc::clone(&self.context.metrics),
                node_name: Arc::clone(&self.node_name),
                requests,
            };
            self.tasks.spawn(collection.run());
        }
        if let Some((settings, pressure)) = self.eviction.take() {
            let eviction = EvictionTask::new(EvictionParts {
                settings,
                context: Arc::clone(&self.context),
                images: Arc::clone(&self.images),
                image_reclaimer,
                node_name: Arc::clone(&self.node_name),
                pressure,
            });
            self.tasks.spawn(eviction.run());
        }
        if let Some((settings, state)) = self.node_shutdown.take() {
            let shutdown = NodeShutdown {
                settings,
                context: Arc::clone(&self.context),
                node_name: Arc::clone(&self.node_name),
                state,
            };
            self.tasks.spawn(shutdown.run());
        }
        if let Some(settings) = self.local_storage.take() {
            let (context, images) = (Arc::clone(&self.context), Arc::clone(&self.images));
            let limits = LocalStorageTask::new(settings, context, images);
            self.tasks.spawn(limits.run());
        }
        let table = PodTable::new(
            Arc::clone(&self.context),
            sources,
            Arc::clone(&self.node_name),
            self.table_heartbeat.clone(),
        );
        self.tasks.spawn(table.run());
    }

    /// Resolves with a message when the agent must stop, or one of its tasks panics or ends.
    pub async fn failed(&mut self) -> String {
        let Self {
            node_allocatable,
            tasks,
            ..
        } = self;
        let ended = async {
            match tasks.join_next().await {
                Some(Err(error)) => format!("a task of the agent panicked: {error}"),
                Some(Ok(())) => "a task of the agent ended unexpectedly".to_owned(),
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            message = node_allocatable.refused() => message,
            message = ended => message,
        }
    }

    /// Stops all tasks and writes pending records. Container starts in progress may end first.
    /// Containers continue to run.
    pub async fn stop(mut self) {
        // Before the tasks are aborted, which would cancel calls in progress.
        self.context.drain.shut(DRAIN).await;
        self.tasks.abort_all();
        while self.tasks.join_next().await.is_some() {}
        // The task that writes records was aborted with the others.
        self.context.records.flush().await;
    }
}

/// Has PLEG relist at once when the runtime is ready again, instead of after its back-off.
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

/// Whether the node shuts down, before logind has answered.
fn initial_shutdown(settings: Option<&ShutdownSettings>) -> ShutdownState {
    match settings {
        Some(_) => ShutdownState::Unknown,
        None => ShutdownState::Running,
    }
}

/// Spawns the task that limits the cgroups of the node, if there are any.
fn enforce_node_allocatable(
    tasks: &mut JoinSet<()>,
    cgroups: Option<Arc<dyn NodeCgroups>>,
    context: &PodContext,
    node_name: &Arc<str>,
) -> FirstEnforcement {
    let Some(cgroups) = cgroups else {
        return FirstEnforcement::none();
    };
    let task = NodeAllocatable {
        cgroups,
        runtime_state: context.runtime_state.clone(),
        recorder: context.recorder.clone(),
        node_name: Arc::clone(node_name),
    };
    let (task, first) = task.start();
    tasks.spawn(task);
    first
}

/// Spawns the tasks that warn of pods that can't be inspected, and of a slow runtime.
fn warn_of_runtime(tasks: &mut JoinSet<()>, context: &PodContext, node_name: &Arc<str>) {
    tasks.spawn(quarantine::warn(
        context.pleg.clone(),
        Arc::clone(&context.board),
        context.recorder.clone(),
    ));
    tasks.spawn(quarantine::warn_of_slowness(
        context.pleg.clone(),
        Arc::clone(node_name),
        context.recorder.clone(),
    ));
}
