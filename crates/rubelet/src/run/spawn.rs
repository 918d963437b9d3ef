//! All tasks other than the agent's own: sources of pods, servers, the node's part in its cluster.

use std::{collections::BTreeMap, convert::Infallible, future::pending, path::Path, sync::Arc};

use rubelet_audit::AuditLog;
use rubelet_cluster::node::set_runtime_pod_cidrs;
use rubelet_config::{Flags, Resolved};
use rubelet_kubelet::{PodSources, agent::Agent, oom_watch::watch_ooms};
use rubelet_kubelet_api::serve_read_only;
use rubelet_node_state::metrics::NodeMetrics;
use rubelet_runtime::EmbeddedRuntime;
use rubelet_server::explanation::VolumeCopy;
use rubelet_sources::{desired::Desired, status::ManifestStatus};
use rubelet_streaming::Sessions;
use rubelet_view::{
    ClusterProblems, LocalView, NetworkFacts, PlegLifecycle, SessionParts, StatsParts, ViewParts,
    VolumeCopies,
};
use tokio::{
    sync::watch,
    task::{JoinHandle, JoinSet},
};

use super::{
    build::Built,
    directories, embedded, iptables_hint,
    joined::{Cluster, DeferredObjects, RunParts},
    manifests, memory, notify,
    observe::CountRequests,
    open::{Listeners, Opened},
    peer_pings, stats, until,
};

/// A running node.
pub(super) struct Running {
    pub(super) agent: Agent,
    /// Resolves when the node's part in its cluster fails; never without a cluster.
    pub(super) cluster: AbortOnDrop,
    pub(super) deferred_objects: Option<Arc<DeferredObjects>>,
    /// Set to stop the servers.
    pub(super) stop: watch::Sender<bool>,
    pub(super) servers: JoinSet<()>,
    pub(super) tasks: JoinSet<()>,
    pub(super) source_tasks: JoinSet<()>,
    pub(super) audit: Option<Arc<AuditLog>>,
    pub(super) embedded: Option<Arc<EmbeddedRuntime>>,
}

/// A task that is aborted with its owner.
pub(super) struct AbortOnDrop(pub(super) JoinHandle<anyhow::Result<Infallible>>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Starts the sources, the servers and the cluster's tasks, and gives the agent its pods.
pub(super) async fn spawn(
    flags: &Flags,
    resolved: Resolved,
    root: &Path,
    opened: Opened,
    mut built: Built,
) -> anyhow::Result<Running> {
    let ManifestSources {
        desired: manifests,
        statuses,
        tasks: source_tasks,
    } = start_manifests(&resolved, root, &opened, &mut built).await?;
    let pod_sources = pod_sources(&resolved, &manifests, built.cluster.as_ref());
    let cluster = built.cluster.as_ref();
    let problems = cluster.map_or_else(ClusterProblems::none, Cluster::problems);
    let view_parts = view_parts(
        stats::parts(flags, &resolved, &opened, &built)?,
        &resolved,
        &opened,
        &built,
        statuses,
        pod_sources.clone(),
        problems.clone(),
    );
    let pleg_problem = Arc::clone(&view_parts.pleg_problem);
    let view = LocalView::start(view_parts, &mut built.tasks);
    let Opened {
        clock,
        node,
        embedded,
        listeners,
        port,
        metrics,
        observer,
        audit,
    } = opened;
    let (mut agent, mut tasks) = (built.agent, built.tasks);
    let (stop, stopped) = watch::channel(false);
    let mut servers = spawn_servers(
        listeners,
        &view,
        &observer,
        audit.as_ref(),
        embedded.as_ref(),
        &stopped,
    );
    spawn_watchers(&agent, problems, &observer, embedded.as_ref(), &mut tasks);
    spawn_node_tasks(&resolved, &agent, &node.name, &metrics, &mut tasks);
    agent.run_pods(pod_sources);
    let port = port.map(|port| {
        let view = Arc::clone(&view) as _;
        port.with_view(view, Arc::clone(&observer), audit.clone(), &node, stopped)
    });
    let deferred_objects = built.cluster.as_ref().map(|it| Arc::clone(&it.objects));
    let cluster = match built.cluster {
        Some(cluster) => {
            let run_parts = RunParts {
                root: root.to_owned(),
                node,
                clock,
                recorder: built.recorder,
                board: Arc::clone(&agent.pods),
                intents: agent.intents().clone(),
                runtime: built.runtime,
                images: built.images,
                image_changes: built.calls.image_changes(),
                runtime_state: agent.runtime_state.clone(),
                pressure: agent.pressure.clone(),
                shutdown: agent.shutdown.clone(),
                problems: pleg_problem,
                metrics,
                manifests,
                port,
            };
            tokio::spawn(cluster.run(run_parts, resolved))
        }
        None => {
            tasks.spawn(node.ips.follow());
            let pod_cidrs = resolved.config.pod_cidr.clone();
            if embedded.is_none() && !pod_cidrs.is_empty() {
                tasks.spawn(set_runtime_pod_cidrs(built.runtime, pod_cidrs));
            }
            if let Some(port) = port {
                servers.spawn(port.serve_alone(flags, &resolved, &clock)?);
            }
            tokio::spawn(pending())
        }
    };
    Ok(Running {
        agent,
        cluster: AbortOnDrop(cluster),
        deferred_objects,
        stop,
        servers,
        tasks,
        source_tasks,
        audit,
        embedded,
    })
}

/// The manifest sources, which end when `tasks` is dropped.
struct ManifestSources {
    desired: watch::Receiver<Arc<Desired>>,
    statuses: watch::Receiver<Arc<Vec<ManifestStatus>>>,
    tasks: JoinSet<()>,
}

/// Starts the manifest sources, the record of what they hold, and their events.
async fn start_manifests(
    resolved: &Resolved,
    root: &Path,
    opened: &Opened,
    built: &mut Built,
) -> anyhow::Result<ManifestSources> {
    let held_record = directories::own_directory(root).join("held-manifests.json");
    let adopted = manifests::adopted(&built.agent).await;
    let (node, clock) = (&opened.node, &opened.clock);
    let sources = manifests::start(resolved, node, &held_record, clock, adopted).await?;
    let tasks = &mut built.tasks;
    tasks.spawn(manifests::keep_held(sources.held, held_record));
    tasks.spawn(manifests::raise(sources.events, built.recorder.clone()));
    Ok(ManifestSources {
        desired: sources.desired,
        statuses: sources.manifests,
        tasks: sources.tasks,
    })
}

/// The parts that the local socket's view needs.
fn view_parts(
    stats: StatsParts,
    resolved: &Resolved,
    opened: &Opened,
    built: &Built,
    statuses: watch::Receiver<Arc<Vec<ManifestStatus>>>,
    desired: PodSources,
    cluster: ClusterProblems,
) -> ViewParts {
    let agent = &built.agent;
    let (pleg, host) = (agent.pleg().clone(), Arc::clone(&built.host));
    let embedded = opened.embedded.as_ref();
    let sessions = SessionParts {
        runtime: Arc::clone(&built.runtime),
        embedded: embedded.map(|runtime| Arc::clone(runtime) as Arc<dyn Sessions>),
        idle_timeout: resolved.config.streaming_connection_idle_timeout,
    };
    // Versions of an earlier process are lower, unless the clock steps back.
    let first_version = u64::try_from(opened.clock.now().as_microsecond()).unwrap_or_default();
    ViewParts {
        pods: Arc::clone(&agent.pods),
        recorder: built.recorder.clone(),
        lifecycle: Arc::new(PlegLifecycle(pleg.clone())),
        intents: agent.intents().clone(),
        objects: Arc::clone(&built.objects),
        prober: agent.prober().clone(),
        clock: opened.clock.clone(),
        manifests: statuses,
        manifest_edits: manifests::edits(resolved),
        desired,
        runtime: agent.runtime_state.clone(),
        pleg_problem: Arc::new(move || pleg.problem()),
        cluster,
        heartbeats: agent.heartbeats.clone(),
        metrics: Arc::clone(&opened.metrics),
        audit: opened.audit.clone(),
        sessions,
        stats,
        network: network_facts(resolved, built),
        log_path: Arc::new(move |pod, container, count| host.log_path(pod, container, count)),
        volume_copies: volume_copies(embedded),
        node_name: Arc::clone(&opened.node.name),
        node_ips: opened.node.ips.subscribe(),
        config: resolved.to_value(),
        not_yet: resolved.not_yet(),
        first_version,
    }
}

/// The expected network of pods.
fn network_facts(resolved: &Resolved, built: &Built) -> NetworkFacts {
    let host = Arc::clone(&built.host);
    let cluster = built.cluster.as_ref();
    NetworkFacts {
        nameservers: Arc::new(move |pod| {
            let host = Arc::clone(&host);
            Box::pin(async move { host.nameservers(&pod).await })
        }),
        api_server: cluster.map_or_else(Arc::default, |it| Arc::clone(&it.api_server)),
        cluster_domain: resolved.config.cluster_domain.clone(),
    }
}

/// Copies of volumes by the embedded runtime. Others don't tell.
fn volume_copies(runtime: Option<&Arc<EmbeddedRuntime>>) -> VolumeCopies {
    let Some(runtime) = runtime.map(Arc::clone) else {
        return Arc::new(|_| BTreeMap::new());
    };
    Arc::new(move |uid| {
        let copies = runtime.volume_copies(uid.as_str()).into_iter();
        let shown = copies.map(|(name, copy)| {
            let copy = VolumeCopy {
                seconds: copy.elapsed.as_secs(),
                begun: copy.begun,
                files: copy.files,
                bytes: copy.bytes,
            };
            (name, copy)
        });
        shown.collect()
    })
}

/// The sources of pods. A source that is not configured never becomes ready, so it is omitted in a
/// cluster; a standalone node has at least its manifests.
fn pod_sources(
    resolved: &Resolved,
    manifests: &watch::Receiver<Arc<Desired>>,
    cluster: Option<&Cluster>,
) -> PodSources {
    match cluster.map(Cluster::desired) {
        Some(api) if !manifests::are_configured(resolved) => vec![api],
        Some(api) => vec![manifests.clone(), api],
        None => vec![manifests.clone()],
    }
}

/// Serves the sockets and ports, except the kubelet's HTTPS port, until `stopped` is true.
fn spawn_servers(
    listeners: Listeners,
    view: &Arc<LocalView>,
    observer: &Arc<CountRequests>,
    audit: Option<&Arc<AuditLog>>,
    embedded: Option<&Arc<EmbeddedRuntime>>,
    stopped: &watch::Receiver<bool>,
) -> JoinSet<()> {
    let mut servers = JoinSet::new();
    if let (Some(runtime), Some(listener)) = (embedded, listeners.cri) {
        let runtime = Arc::clone(runtime);
        servers.spawn(embedded::serve_cri(
            listener,
            runtime,
            until(stopped.clone()),
        ));
    }
    servers.spawn(rubelet_server::serve_unix(
        listeners.api,
        Arc::clone(view) as _,
        Arc::clone(observer) as _,
        audit.cloned(),
        until(stopped.clone()),
    ));
    if let Some(listener) = listeners.health {
        servers.spawn(rubelet_server::serve_health(
            listener,
            Arc::clone(view) as _,
            Arc::clone(observer) as _,
            until(stopped.clone()),
        ));
    }
    if let Some(listener) = listeners.read_only {
        servers.spawn(serve_read_only(
            listener,
            Arc::clone(view) as _,
            Arc::clone(observer) as _,
            until(stopped.clone()),
        ));
    }
    servers
}

/// Starts the tasks that concern the machine and not its pods.
fn spawn_node_tasks(
    resolved: &Resolved,
    agent: &Agent,
    node_name: &Arc<str>,
    metrics: &Arc<NodeMetrics>,
    tasks: &mut JoinSet<()>,
) {
    let (pleg, recorder) = (agent.pleg().clone(), agent.recorder.clone());
    tasks.spawn(watch_ooms(pleg, recorder, Arc::clone(node_name)));
    if resolved.config.make_iptables_util_chains {
        tasks.spawn(iptables_hint::keep());
    }
    let pings = &resolved.rubelet.peer_pings;
    if !pings.peers.is_empty() {
        tasks.spawn(peer_pings::run(pings.clone(), Arc::clone(metrics)));
    }
}

/// Reports to systemd, and returns memory after bursts.
fn spawn_watchers(
    agent: &Agent,
    problems: ClusterProblems,
    observer: &CountRequests,
    embedded: Option<&Arc<EmbeddedRuntime>>,
    tasks: &mut JoinSet<()>,
) {
    tasks.spawn(notify::status(
        Arc::clone(&agent.pods),
        agent.runtime_state.clone(),
        problems,
    ));
    tasks.spawn(notify::watchdog(agent.heartbeats.clone()));
    let mut work = vec![agent.pods.versions(), observer.ended_sessions()];
    work.extend(embedded.map(|runtime| runtime.ended_sessions()));
    tasks.spawn(memory::trim_memory(work));
}
