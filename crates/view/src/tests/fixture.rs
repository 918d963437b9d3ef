//! A view of pods that no kubelet works on.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use jiff::Timestamp;
use rubelet_api::{
    manifest::decode,
    objects::{PodObjects, Token},
    parse::{ParseContext, parse},
    pod::{Pod, PodSource},
    status::{Condition, ContainerState, ContainerStatus, Phase, PodStatus, Terminated},
};
use rubelet_base::PodUid;
use rubelet_cri::ImageService;
use rubelet_host::CgroupFs;
use rubelet_node_state::{
    board::Board,
    clock::Clock,
    events::Recorder,
    host_error::{HostError, HostWarning},
    intents::IntentBoard,
    keyring::PullLogin,
    metrics::NodeMetrics,
    node_ips::NodeIps,
    objects::{
        NoObjects, ObjectRefs, ObjectSource, ServiceAccount, ServiceAccountError, ServiceAccounts,
        never,
    },
    pod_board::{PodBoard, PodEntry},
    runtime_state::RuntimeState,
};
use rubelet_pleg::LifecycleEvent;
use rubelet_pod_plan::{History, OperatorIntents};
use rubelet_probes::ProberHandle;
use rubelet_server::{
    ActionError, NodeView as _, PodAction, PodAnswer, PodPatch, PodRef, Resource,
    explanation::VolumeCopy,
};
use rubelet_sources::{
    desired::Desired,
    state::ManifestEdits,
    status::{ManifestPod, ManifestState, ManifestStatus},
};
use rubelet_stats::{PodDirectories, StatsCollector, StatsSettings, SystemCgroups, UsageSource};
use serde_json::Value;
use tempfile::TempDir;
use tokio::{sync::watch, task::JoinSet};

use super::fake_runtime::FakeRuntime;
use crate::{ClusterProblems, LocalView, NetworkFacts, SessionParts, StatsParts, ViewParts};

/// When it is.
pub(super) const NOW: &str = "2026-03-01T12:00:00Z";

/// A runtime that knows nothing of images.
struct NoImages;

impl ImageService for NoImages {}

/// A secret that the API server did not confirm.
struct UnconfirmedSecret;

#[async_trait]
impl ServiceAccounts for UnconfirmedSecret {
    async fn service_account(&self, pod: &Pod) -> Result<ServiceAccount, ServiceAccountError> {
        NoObjects.service_account(pod).await
    }

    async fn service_account_token(
        &self,
        pod: &Pod,
        uid: &str,
        audience: &str,
    ) -> Result<Token, ServiceAccountError> {
        NoObjects.service_account_token(pod, uid, audience).await
    }
}

#[async_trait]
impl ObjectSource for UnconfirmedSecret {
    fn track(&self, _: &Arc<Pod>) {}

    fn forget(&self, _: &PodUid) {}

    async fn objects(&self, _: &Arc<Pod>, _: ObjectRefs<'_>) -> Result<PodObjects, HostError> {
        Ok(PodObjects::default())
    }

    async fn pull_credentials(&self, _: &Arc<Pod>, _: &str) -> (Vec<PullLogin>, Vec<HostWarning>) {
        (Vec::new(), Vec::new())
    }

    async fn runtime_handler(&self, _: &str) -> Result<String, HostError> {
        Ok(String::new())
    }

    fn changes(&self, _: &PodUid) -> watch::Receiver<u64> {
        never()
    }

    fn unconfirmed(&self, _: &PodUid) -> Vec<String> {
        vec!["secret \"login\"".to_owned()]
    }
}

pub(super) fn at(text: &str) -> Timestamp {
    text.parse().expect("a time")
}

/// A view of a node without pods.
pub(super) struct TestView {
    pub(super) view: Arc<LocalView>,
    pub(super) board: Arc<PodBoard>,
    pub(super) intents: IntentBoard,
    pub(super) recorder: Recorder,
    pub(super) lifecycle: Arc<Board<u64, LifecycleEvent>>,
    pub(super) manifests: watch::Sender<Arc<Vec<ManifestStatus>>>,
    pub(super) desired: watch::Sender<Arc<Desired>>,
    pub(super) directory: TempDir,
    pub(super) runtime: Arc<FakeRuntime>,
    _tasks: JoinSet<()>,
}

impl TestView {
    pub(super) fn new() -> Self {
        Self::with_runtime(false)
    }

    /// A view whose runtime is in this process, or is not.
    pub(super) fn with_runtime(embedded: bool) -> Self {
        let fake = Arc::new(FakeRuntime::default());
        let sessions = SessionParts {
            runtime: Arc::clone(&fake) as _,
            embedded: embedded.then(|| Arc::clone(&fake) as _),
            idle_timeout: Duration::from_secs(60),
        };
        let directory = tempfile::tempdir().unwrap();
        let board = Arc::new(Board::new());
        let clock = Clock::following_tokio(at(NOW));
        let recorder = Recorder::new(clock.clone());
        let intents = IntentBoard::new(directory.path().to_owned());
        let manifests = watch::Sender::new(Arc::default());
        let desired = watch::Sender::new(Arc::default());
        let runtime = RuntimeState {
            name: "containerd".into(),
            answered: true,
            ..RuntimeState::default()
        };
        let logs = directory.path().to_owned();
        let stats = StatsCollector::new(StatsSettings {
            pods: Arc::clone(&board),
            runtime: Arc::clone(&fake) as _,
            images: Arc::new(NoImages),
            cgroups: CgroupFs::from_mounts(directory.path(), true, &[]).unwrap(),
            trees: Vec::new(),
            system: SystemCgroups::of_agent(at(NOW)),
            source: UsageSource::Cgroups,
            clock: clock.clone(),
            machine: "/".into(),
            root: "/".into(),
            logs: directory.path().to_owned(),
            log_directory: Arc::new(|_, container| container.into()),
            directories: Arc::new(|_| PodDirectories::default()),
            volume_period: None,
            metrics: NodeMetrics::new(),
            cpu_period_us: None,
        });
        let stats = StatsParts {
            collector: Arc::new(stats),
            max_age: Duration::from_secs(10),
        };
        let mut tasks = JoinSet::new();
        let lifecycle: Arc<Board<u64, LifecycleEvent>> = Arc::default();
        let view = LocalView::start(
            ViewParts {
                pods: Arc::clone(&board),
                recorder: recorder.clone(),
                lifecycle: Arc::new(Arc::clone(&lifecycle)),
                intents: intents.clone(),
                objects: Arc::new(UnconfirmedSecret),
                prober: ProberHandle::default(),
                clock,
                manifests: manifests.subscribe(),
                manifest_edits: ManifestEdits::Replace,
                cluster: ClusterProblems::none(),
                desired: vec![desired.subscribe()],
                runtime: watch::channel(runtime).1,
                pleg_problem: Arc::new(|| None),
                heartbeats: Vec::new(),
                metrics: NodeMetrics::new(),
                not_yet: Some("rotation of container logs".to_owned()),
                audit: None,
                sessions,
                stats,
                network: NetworkFacts {
                    nameservers: Arc::new(|_| Box::pin(async { Vec::new() })),
                    api_server: Arc::default(),
                    cluster_domain: String::new(),
                },
                log_path: Arc::new(move |_, container, count| {
                    logs.join(format!("{container}-{count}.log"))
                }),
                volume_copies: Arc::new(|_| {
                    let copies = [("web", copy_since(2)), ("side", copy_since(1))];
                    copies.map(|(name, copy)| (name.to_owned(), copy)).into()
                }),
                node_name: "n1".into(),
                node_ips: NodeIps::fixed(vec!["192.0.2.1".parse().unwrap()]),
                config: Value::Null,
                first_version: 1000,
            },
            &mut tasks,
        );
        Self {
            view,
            board,
            intents,
            recorder,
            lifecycle,
            manifests,
            desired,
            directory,
            runtime: fake,
            _tasks: tasks,
        }
    }

    /// Puts a pod on the board, and waits until it is seen.
    pub(super) async fn put(&self, entry: PodEntry) {
        let uid = entry.pod.uid.clone();
        let before = self.view.list(Resource::Pods).resource_version;
        self.board.set(uid, entry);
        self.until(|| self.view.list(Resource::Pods).resource_version > before)
            .await;
    }

    pub(super) async fn until(&self, met: impl Fn() -> bool) {
        for _ in 0..1000 {
            if met() {
                return;
            }
            tokio::task::yield_now().await;
        }
        panic!("it does not come");
    }

    /// The pod as clients see it.
    pub(super) fn pod(&self) -> Value {
        let items = self.view.list(Resource::Pods).items;
        items[0].to_json(Resource::Pods)
    }

    pub(super) async fn act(&self, action: PodAction) -> Result<Value, ActionError> {
        let pod = PodRef {
            namespace: "default".to_owned(),
            name: "web-n1".to_owned(),
        };
        match self.view.act(&pod, action).await? {
            PodAnswer::Pod(object) => Ok(object.to_json(Resource::Pods)),
            PodAnswer::Document(document) => Ok(document),
        }
    }

    pub(super) async fn asked(&self, entry: &PodEntry) -> Arc<OperatorIntents> {
        self.intents.watch(&entry.pod.uid).await.borrow().clone()
    }

    /// Says that a manifest has this pod.
    pub(super) fn keep(&self, origin: &str, source: &'static str, entry: &PodEntry) {
        let name = &entry.pod.name;
        self.manifests.send_replace(Arc::new(vec![ManifestStatus {
            origin: origin.into(),
            source,
            state: ManifestState::Ok,
            pods: vec![ManifestPod {
                namespace: (*name.namespace).into(),
                name: (*name.name).into(),
                uid: entry.pod.uid.as_str().into(),
            }],
            reason: None,
            message: String::new(),
            problems: Vec::new(),
            last_good_time: None,
            last_change_time: None,
        }]));
    }
}

pub(super) fn merge(patch: &Value) -> PodPatch {
    PodPatch::read("application/merge-patch+json", patch.to_string().as_bytes()).unwrap()
}

pub(super) fn strategic(patch: &Value) -> PodPatch {
    let kind = "application/strategic-merge-patch+json";
    PodPatch::read(kind, patch.to_string().as_bytes()).unwrap()
}

const SPEC: &str = "
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  readinessGates: [{conditionType: lb/up}]
  initContainers:
  - {name: setup, image: 'app:1'}
  - {name: proxy, image: 'app:1', restartPolicy: Always}
  containers:
  - name: web
    image: 'app:1'
    readinessProbe: {tcpSocket: {port: 80}}
  - {name: side, image: 'app:1'}
";

fn pod() -> Pod {
    let mut documents = decode(SPEC);
    let context = ParseContext {
        node_name: "n1",
        source: PodSource::File,
        origin: "/m/web.yaml",
        adopted_uid: None,
        now: at(NOW),
    };
    parse(documents.pods.remove(0).unwrap(), &context).unwrap()
}

/// A running pod with an init container, a sidecar and two containers, of which nothing was asked.
pub(super) fn entry() -> PodEntry {
    let started_at = at("2026-03-01T11:00:00Z");
    let setup = ContainerState::Terminated(terminated("setup-0", 0));
    let status = PodStatus {
        phase: Phase::Running,
        reason: "".into(),
        message: "".into(),
        start_time: started_at,
        pod_ips: vec!["10.0.0.7".into()],
        conditions: vec![condition("Initialized", true), condition("Ready", false)],
        observed_generation: 1,
        init_containers: vec![
            container("setup", setup),
            container("proxy", ContainerState::Running { started_at }),
        ],
        containers: vec![
            container("side", ContainerState::Running { started_at }),
            container("web", ContainerState::Running { started_at }),
        ],
        ephemeral_containers: Vec::new(),
    };
    PodEntry {
        pod: Arc::new(pod()),
        status,
        deletion: None,
        why: Vec::new(),
        history: Arc::new(History::default()),
        wake_at: None,
        finished: false,
    }
}

pub(super) fn condition(kind: &str, status: bool) -> Condition {
    Condition {
        kind: kind.into(),
        status: status.into(),
        reason: "".into(),
        message: "".into(),
        last_transition: at("2026-03-01T11:00:05Z"),
        observed_generation: 1,
    }
}

pub(super) fn container(name: &str, state: ContainerState) -> ContainerStatus {
    ContainerStatus {
        name: name.into(),
        image: "app:1".into(),
        image_id: "sha256:1".into(),
        container_id: format!("{name}-0").into(),
        ready: matches!(state, ContainerState::Running { .. }),
        started: true,
        restart_count: 0,
        state,
        last_state: None,
        user: None,
        recursive_read_only: Vec::new(),
    }
}

pub(super) fn terminated(id: &str, exit_code: i32) -> Terminated {
    Terminated {
        exit_code,
        reason: "Completed".into(),
        message: "".into(),
        started_at: Some(at("2026-03-01T11:00:00Z")),
        finished_at: Some(at("2026-03-01T11:00:04Z")),
        container_id: id.into(),
    }
}

pub(super) fn ending(seconds: u64) -> PodEntry {
    PodEntry {
        deletion: Some((at("2026-03-01T11:59:50Z"), Duration::from_secs(seconds))),
        ..entry()
    }
}

/// A copy of a volume that began this many seconds ago.
fn copy_since(seconds: u64) -> VolumeCopy {
    VolumeCopy {
        seconds,
        begun: true,
        files: 3,
        bytes: 1 << 20,
    }
}
