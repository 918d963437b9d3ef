//! The node as part of a cluster: connects the agent and the API server.
//!
//! The agent starts without waiting for the API server: pods of manifests run while the node has no
//! certificate yet. [`Cluster`] is the part before that; [`Cluster::run`] is the rest.

mod deferred;
mod settings;

use std::{
    convert::Infallible,
    future::Future,
    net::IpAddr,
    path::{Path, PathBuf},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use anyhow::{Context as _, anyhow};
use rubelet_base::ErrorChain;
use rubelet_cluster::{
    events::{self, EventParts},
    mirror::{self, MirrorParts},
    node::{self as node_object, NodeHandle, NodeParts, NodeView},
    objects::{ClusterObjects, ObjectsParts},
    source::{
        self, ApiPods, SourceParts,
        admission_gate::{AdmissionGate, PreemptFn, RefreshFn},
    },
    status::{self, StatusContext, StatusParts},
};
use rubelet_config::{Flags, Resolved};
use rubelet_cri::{ImageService, RuntimeService};
use rubelet_host::open_files::limit_as_before;
use rubelet_kube::{
    Client, ClientOptions, UnreadableObjects, WatchReopener,
    certificates::{CertificateHooks, CertificateNotice, ClientCertificate, ClientSetup},
};
use rubelet_node_plan::{eviction::Pressure, node_status::NodeSettings};
use rubelet_node_state::{
    clock::Clock, events::Recorder, intents::IntentBoard, metrics::NodeMetrics,
    pod_board::PodBoard, runtime_state::RuntimeState, shutdown_state::ShutdownState,
};
use rubelet_sources::desired::Desired;
use rubelet_view::ClusterProblems;
use tokio::{sync::watch, task::JoinSet};

pub(super) use self::deferred::DeferredObjects;
use super::{
    node::{FollowedIps, Node},
    observe::CountRequests,
    port::KubeletPort,
};

/// The kubelet's path of the client certificate, and its name in messages.
const CERTIFICATE: &str = "client certificate";

/// The cluster as the agent needs it from the start.
pub(super) struct Cluster {
    /// The API server's state of each pod.
    api: Arc<ApiPods>,
    /// Decides which pods may start.
    pub(super) gate: Arc<AdmissionGate>,
    /// Objects of the API server that pods reference.
    pub(super) objects: Arc<DeferredObjects>,
    /// The pods that the API server assigned to this node.
    desired: watch::Sender<Arc<Desired>>,
    /// Why the API server can't be used, in one line.
    problem: watch::Sender<Option<String>>,
    /// The problem with the node object, in one line; `None` without one.
    node_problem: watch::Sender<Option<String>>,
    /// Fields of the API server's objects that can't be decoded, once there is a client.
    unread: Arc<OnceLock<UnreadableObjects>>,
    /// The host and port of the API server, once there is a client.
    pub(super) api_server: Arc<OnceLock<(String, u16)>>,
    node: Arc<OnceLock<NodeHandle>>,
    certificate: ClientCertificate,
    notice: CertificateNotice,
    options: ClientOptions,
    settings: NodeSettings,
    kept: PathBuf,
    cert_dir: PathBuf,
}

/// The parts of the agent after its start.
pub(super) struct RunParts {
    pub(super) root: PathBuf,
    pub(super) node: Node,
    pub(super) clock: Clock,
    pub(super) recorder: Recorder,
    pub(super) board: Arc<PodBoard>,
    pub(super) intents: IntentBoard,
    pub(super) runtime: Arc<dyn RuntimeService>,
    pub(super) images: Arc<dyn ImageService>,
    /// Counts changes of images.
    pub(super) image_changes: watch::Receiver<u64>,
    pub(super) runtime_state: watch::Receiver<RuntimeState>,
    pub(super) pressure: watch::Receiver<Pressure>,
    pub(super) shutdown: watch::Receiver<ShutdownState>,
    pub(super) problems: Arc<dyn Fn() -> Option<String> + Send + Sync>,
    pub(super) metrics: Arc<NodeMetrics>,
    /// The desired pods of manifests.
    pub(super) manifests: watch::Receiver<Arc<Desired>>,
    pub(super) port: Option<KubeletPort>,
}

impl Cluster {
    /// Reads `--kubeconfig` and related flags. Sends no request to the API server yet.
    pub(super) fn new(
        flags: &Flags,
        resolved: &Resolved,
        node: &Node,
        clock: &Clock,
        metrics: &Arc<NodeMetrics>,
    ) -> anyhow::Result<Self> {
        let config = &resolved.config;
        let kubeconfig = flags
            .kubeconfig()
            .context("--bootstrap-kubeconfig needs --kubeconfig, the file to write")?;
        let wall = clock.clone();
        let options = ClientOptions {
            before_plugin: |command| {
                limit_as_before(command);
            },
            qps: rate(config.kube_api_qps),
            burst: u32::try_from(config.kube_api_burst).unwrap_or(0),
            observer: Arc::new(CountRequests::new(Arc::clone(metrics))),
            clock: Arc::new(move || wall.now()),
            ..ClientOptions::default()
        };
        let notice = CertificateNotice::new(CERTIFICATE);
        let cert_dir = PathBuf::from(flags.cert_dir());
        let certificate = ClientCertificate::new(ClientSetup {
            kubeconfig: kubeconfig.into(),
            bootstrap_kubeconfig: flags.bootstrap_kubeconfig().map(PathBuf::from),
            cert_dir: cert_dir.clone(),
            node_name: Arc::clone(&node.name),
            rotate: config.rotate_certificates,
            options: options.clone(),
            notice: notice.clone(),
            hooks: hooks(metrics),
        });
        let (expiry, wall) = (certificate.expiry(), clock.clone());
        metrics
            .api
            .set_client_ttl(move || expiry.ttl_seconds(wall.now()));
        let settings = settings::node(flags, resolved, node)?;
        let api = Arc::new(ApiPods::new());
        let handle = Arc::new(OnceLock::<NodeHandle>::new());
        let seen = Arc::clone(&handle);
        let admission = move |pod: &_, others: &[_]| match seen.get() {
            // Before there is a node object, only manifests have pods.
            None => Ok(()),
            Some(node) => node.admit(pod, others),
        };
        let seen = Arc::clone(&handle);
        let preempt: PreemptFn = Box::new(move |pod, others| seen.get()?.preempt(pod, others));
        let seen = Arc::clone(&handle);
        let refresh: RefreshFn = Box::new(move || {
            let node = seen.get().cloned();
            Box::pin(async move {
                if let Some(node) = node {
                    node.refresh().await;
                }
            })
        });
        Ok(Self {
            gate: Arc::new(
                AdmissionGate::new(Arc::clone(&api), Box::new(admission))
                    .with_preemption(preempt)
                    .with_refresh(refresh),
            ),
            api,
            objects: Arc::new(DeferredObjects::default()),
            desired: watch::Sender::new(source::unknown()),
            problem: watch::Sender::new(None),
            node_problem: watch::Sender::new(None),
            unread: Arc::default(),
            api_server: Arc::default(),
            node: handle,
            certificate,
            notice,
            options,
            settings,
            kept: super::directories::own_directory(Path::new(flags.root_dir())),
            cert_dir,
        })
    }

    /// The pods that the API server assigned to this node.
    pub(super) fn desired(&self) -> watch::Receiver<Arc<Desired>> {
        self.desired.subscribe()
    }

    /// Problems with the cluster.
    pub(super) fn problems(&self) -> ClusterProblems {
        ClusterProblems {
            api_server: self.problem.subscribe(),
            certificate: self.notice.subscribe(),
            node: self.node_problem.subscribe(),
            unread: Arc::clone(&self.unread),
        }
    }

    /// Runs the node's part in the cluster, forever.
    ///
    /// # Errors
    /// A file is missing or corrupt: nothing that waiting would fix.
    pub(super) async fn run(
        mut self,
        parts: RunParts,
        resolved: Resolved,
    ) -> anyhow::Result<Infallible> {
        let waits = forward_notice(self.notice.subscribe(), self.problem.clone());
        let config = tokio::select! {
            config = self.certificate.config() => {
                config.map_err(|error| anyhow!("{}", ErrorChain(&error)))?
            }
            never = waits => match never {},
        };
        self.problem.send_replace(None);
        let client = Client::new(config, self.options.clone())
            .map_err(|error| anyhow!("--kubeconfig: {}", ErrorChain(&error)))?;
        // Set once: this runs once.
        let _ = self.unread.set(client.unreadable().clone());
        let server = client.server();
        let _ = self
            .api_server
            .set((server.host().to_owned(), server.port()));
        let mut tasks = JoinSet::new();
        let objects = self.objects(&client, &parts, &resolved, &mut tasks);
        let node = self.node(&client, &parts, &resolved, &mut tasks);
        self.pods(&client, &parts, &resolved, &node, &mut tasks);
        tasks.spawn(sweep(objects, self.desired.subscribe()));
        if let Some(port) = parts.port {
            let addresses = node.own.clone();
            let served = port
                .serve(&client, &resolved, addresses, &self.cert_dir, &parts.clock)
                .await?;
            tasks.spawn(served);
        }
        tasks.spawn(forever(self.certificate.renew(client)));
        match tasks.join_next().await {
            Some(Err(error)) => Err(anyhow!("a task of the cluster connection failed: {error}")),
            _ => Err(anyhow!("a task of the cluster connection ended")),
        }
    }

    fn objects(
        &self,
        client: &Client,
        parts: &RunParts,
        resolved: &Resolved,
        tasks: &mut JoinSet<()>,
    ) -> ClusterObjects {
        let config = &resolved.config;
        let node = Arc::clone(&self.node);
        let ttl = move || node.get()?.node.borrow().as_ref()?.object_ttl;
        let objects = ClusterObjects::new(ObjectsParts {
            client: client.clone(),
            clock: parts.clock.clone(),
            directory: self.kept.join("objects"),
            secrets: settings::secrets_at_rest(resolved, &parts.node),
            detection: settings::detection(config),
            ttl: Arc::new(ttl),
            sync_frequency: config.sync_frequency,
        });
        self.objects.set(objects.clone());
        tasks.spawn(objects.clone().run());
        objects
    }

    fn node(
        &self,
        client: &Client,
        parts: &RunParts,
        resolved: &Resolved,
        tasks: &mut JoinSet<()>,
    ) -> NodeHandle {
        let (told, images) = watch::channel(Default::default());
        let (handle, run) = node_object::run(NodeParts {
            client: client.clone(),
            settings: self.settings.clone(),
            facts: node_object::node_facts(
                &parts.node.machine,
                Path::new("/"),
                &rubelet_server::git_version(),
            ),
            runtime: parts.runtime_state.clone(),
            pressure: parts.pressure.clone(),
            shutdown: parts.shutdown.clone(),
            images,
            problems: Arc::clone(&parts.problems),
            problem: self.node_problem.clone(),
            recorder: parts.recorder.clone(),
            clock: parts.clock.clone(),
            root: parts.root.clone(),
            server_port: parts.port.as_ref().map(KubeletPort::number),
            apparmor: settings::apparmor(),
            allowed_unsafe_sysctls: settings::sysctls(&resolved.config),
            metrics: Arc::clone(&parts.metrics),
        });
        // Set once: this runs once.
        let _ = self.node.set(handle.clone());
        tasks.spawn(run);
        let (service, runtime) = (Arc::clone(&parts.images), parts.runtime_state.clone());
        let changes = parts.image_changes.clone();
        let max = self.settings.max_images;
        tasks.spawn(forever(node_object::follow_images(
            service, runtime, changes, max, told,
        )));
        let runtime = Arc::clone(&parts.runtime);
        tasks.spawn(forever(node_object::forward_pod_cidrs(
            runtime,
            handle.node.clone(),
        )));
        handle
    }

    fn pods(
        &self,
        client: &Client,
        parts: &RunParts,
        resolved: &Resolved,
        node: &NodeHandle,
        tasks: &mut JoinSet<()>,
    ) {
        let config = &resolved.config;
        let node_name = Arc::clone(&parts.node.name);
        let reopener = WatchReopener::default();
        tasks.spawn(source::run(SourceParts {
            client: client.clone(),
            reopener: reopener.clone(),
            node_name: Arc::clone(&node_name),
            directory: self.kept.join("api-pods"),
            api: Arc::clone(&self.api),
            gate: Arc::clone(&self.gate),
            intents: parts.intents.clone(),
            recorder: parts.recorder.clone(),
            problem: self.problem.clone(),
            desired: self.desired.clone(),
            clock: parts.clock.clone(),
            metrics: Arc::clone(&parts.metrics),
        }));
        let context = StatusContext {
            host_ips: parts.node.ips.subscribe().now(),
            runtime: "".into(),
        };
        let (context, follow) = watch::channel(context);
        tasks.spawn(follow_status_context(
            parts.runtime_state.clone(),
            node.own.clone(),
            parts.node.ips.clone(),
            context,
        ));
        tasks.spawn(status::run(StatusParts {
            client: client.clone(),
            reopener,
            board: Arc::clone(&parts.board),
            api: Arc::clone(&self.api),
            context: follow,
            clock: parts.clock.clone(),
            metrics: Arc::new(CountRequests::new(Arc::clone(&parts.metrics))),
        }));
        let (uid, node_uid) = watch::channel(None);
        tasks.spawn(forward_node_uid(node.clone(), uid));
        tasks.spawn(mirror::run(MirrorParts {
            client: client.clone(),
            node_name: Arc::clone(&node_name),
            node_uid,
            desired: parts.manifests.clone(),
            listed: self.desired.subscribe(),
            board: Arc::clone(&parts.board),
            api: Arc::clone(&self.api),
        }));
        let (qps, burst) = (rate(config.event_record_qps), config.event_burst);
        let burst = u32::try_from(burst).unwrap_or(0);
        let dropped = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&dropped);
        parts
            .metrics
            .api
            .set_events_dropped(move || counted.load(Ordering::Relaxed));
        tasks.spawn(events::run(EventParts {
            // Events have a separate rate limit and must not use up that of pods.
            client: client.with_limits(0.0, 0, Duration::from_secs(30)),
            recorder: parts.recorder.clone(),
            node_name,
            qps,
            burst,
            dropped,
        }));
    }
}

/// Counts renewals of the client certificate.
fn hooks(metrics: &Arc<NodeMetrics>) -> CertificateHooks {
    let failed = Arc::clone(metrics);
    CertificateHooks {
        failed: Arc::new(move || failed.api.client_renew_errors.inc()),
        ..CertificateHooks::default()
    }
}

/// Requests per second, as configured.
fn rate(number: i32) -> f32 {
    u16::try_from(number).map_or(0.0, f32::from)
}

async fn forever(future: impl Future<Output = Infallible>) {
    match future.await {}
}

/// Forwards the current notice, forever.
async fn forward_notice(
    mut notice: watch::Receiver<Option<String>>,
    problem: watch::Sender<Option<String>>,
) -> Infallible {
    loop {
        let line = notice.borrow_and_update().clone();
        problem.send_replace(line);
        if notice.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// Statuses contain the runtime's name in container IDs, and the addresses of the node.
async fn follow_status_context(
    mut runtime: watch::Receiver<RuntimeState>,
    mut node: watch::Receiver<Arc<NodeView>>,
    followed: FollowedIps,
    context: watch::Sender<StatusContext>,
) {
    loop {
        let name = Arc::clone(&runtime.borrow_and_update().name);
        let ips = internal_ips(&node.borrow_and_update());
        // Pods have the addresses of the node object.
        followed.set(&ips);
        context.send_if_modified(|context| {
            let before = context.clone();
            context.runtime = name;
            if !ips.is_empty() {
                context.host_ips = ips.into();
            }
            *context != before
        });
        // Cancel safety: watch receivers keep changes that were not observed.
        let changed = tokio::select! {
            changed = runtime.changed() => changed,
            changed = node.changed() => changed,
        };
        if changed.is_err() {
            return std::future::pending().await;
        }
    }
}

fn internal_ips(node: &NodeView) -> Vec<IpAddr> {
    let addresses = node.addresses.iter();
    let internal = addresses.filter(|one| &*one.kind == "InternalIP");
    internal
        .filter_map(|one| one.address.parse().ok())
        .collect()
}

/// Mirror pods are owned by the node object.
async fn forward_node_uid(mut node: NodeHandle, uid: watch::Sender<Option<Arc<str>>>) {
    loop {
        let now = node.node.borrow_and_update().clone();
        let now = now.map(|node| Arc::from(&*node.uid));
        uid.send_if_modified(|before| {
            let changed = *before != now;
            *before = now;
            changed
        });
        if node.node.changed().await.is_err() {
            return std::future::pending().await;
        }
    }
}

/// Removes the records of pods that the API server does not list any more, once.
async fn sweep(objects: ClusterObjects, mut desired: watch::Receiver<Arc<Desired>>) {
    let listed = desired.wait_for(|desired| desired.sources_ready()).await;
    let pods = listed.map(|listed| listed.pods.values().cloned().collect::<Vec<_>>());
    if let Ok(pods) = pods {
        objects.sweep(&pods).await;
    }
    std::future::pending::<()>().await;
}
