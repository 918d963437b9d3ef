//! A node whose pods are made up, joined to a model API server.

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{Arc, atomic::AtomicU64},
    time::Duration,
};

use jiff::Timestamp;
use parking_lot::{Mutex, MutexGuard};
use rubelet_api::{
    manifest::decode,
    parse::{ParseContext, parse},
    pod::{Pod, PodSource},
};
use rubelet_base::{PodName, PodUid};
use rubelet_cluster::{
    events::{self, EventParts},
    mirror::{self, MirrorParts},
    source::{self, ApiPods, SourceParts, admission_gate::AdmissionGate},
    status::{self, IgnoreDurations, StatusContext, StatusParts},
};
use rubelet_kube::{
    Client, ClientConfig, ClientOptions, Connector, Credential, Secret, WatchReopener,
};
use rubelet_node_state::{
    board::Board,
    clock::Clock,
    events::{EventType, Recorder, Subject},
    metrics::NodeMetrics,
    pod_board::PodBoard,
};
use rubelet_sources::desired::Desired;
use serde_json::{Value, json};
use sim_api::{SimApi, SimApiConfig, User};
use tokio::{
    sync::watch,
    task::JoinSet,
    time::{Instant, sleep, timeout},
};

use crate::pods::Lives;

/// The API server, the node, and what its pods do.
pub(crate) struct World {
    pub(crate) api: Arc<SimApi>,
    client: Client,
    board: Arc<PodBoard>,
    recorder: Recorder,
    clock: Clock,
    metrics: Arc<NodeMetrics>,
    manifests: watch::Sender<Arc<Desired>>,
    lives: Arc<Mutex<Lives>>,
    tasks: Mutex<JoinSet<()>>,
    directory: tempfile::TempDir,
    began: Instant,
}

impl World {
    pub(crate) async fn start(seed: u64) -> Self {
        let began = Instant::now();
        let config = SimApiConfig {
            seed,
            authenticate: true,
            scheduler: false,
            start: Some(Timestamp::from_second(1_800_000_000).expect("a time")),
            ..SimApiConfig::default()
        };
        let api = Arc::new(SimApi::start(config).await.expect("a server"));
        api.add_token("node-token", User::node("n"));
        let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}});
        api.create("nodes", &node).expect("a node");
        let server = Arc::clone(&api);
        let connector = Connector::new(move || {
            let server = Arc::clone(&server);
            async move { Ok(server.connect()) }
        });
        let mut config = ClientConfig::anonymous("http://model")
            .expect("a URL")
            .over(connector);
        config.credential = Credential::Token(Secret::new("node-token"));
        let options = ClientOptions {
            qps: 0.0,
            seed,
            request_timeout: Duration::from_secs(10),
            ..ClientOptions::default()
        };
        let clock = Clock::following_tokio(Timestamp::from_second(1_800_000_000).expect("a time"));
        let lives = Arc::new(Mutex::new(Lives::new(seed)));
        let truth = Arc::clone(&lives);
        api.on_node_delete(move |pod| {
            let uid = pod["metadata"]["uid"].as_str()?;
            let left = truth.lock().has(&PodUid::from(uid));
            left.then(|| "something of it is left".to_owned())
        });
        let world = Self {
            api,
            client: Client::new(config, options).expect("a client"),
            board: Arc::new(Board::new()),
            recorder: Recorder::new(clock.clone()),
            clock,
            manifests: watch::Sender::new(Arc::default()),
            lives,
            tasks: Mutex::default(),
            metrics: NodeMetrics::new(),
            directory: tempfile::tempdir().expect("a directory"),
            began,
        };
        world.restart_agent();
        world
    }

    /// The metrics of the node.
    pub(crate) fn metrics(&self) -> &NodeMetrics {
        &self.metrics
    }

    /// Starts the tasks that talk to the API server, without anything that they knew before.
    pub(crate) fn restart_agent(&self) {
        let mut tasks = self.tasks.lock();
        tasks.abort_all();
        *tasks = JoinSet::new();
        let api: Arc<ApiPods> = Arc::new(Board::new());
        let (desired, wanted) = watch::channel(source::unknown());
        let reopener = WatchReopener::default();
        tasks.spawn(source::run(SourceParts {
            client: self.client.clone(),
            reopener: reopener.clone(),
            node_name: "n".into(),
            directory: PathBuf::from(self.directory.path()),
            api: Arc::clone(&api),
            gate: Arc::new(AdmissionGate::new(
                Arc::clone(&api),
                Box::new(|_, _| Ok(())),
            )),
            intents: rubelet_node_state::intents::IntentBoard::new(
                self.directory.path().join("intents"),
            ),
            recorder: self.recorder.clone(),
            problem: watch::Sender::new(None),
            desired,
            clock: self.clock.clone(),
            metrics: Arc::clone(&self.metrics),
        }));
        let (_, context) = watch::channel(StatusContext {
            host_ips: Arc::from([[192, 168, 0, 1].into()]),
            runtime: "model".into(),
        });
        tasks.spawn(status::run(StatusParts {
            client: self.client.clone(),
            reopener,
            board: Arc::clone(&self.board),
            api: Arc::clone(&api),
            context,
            clock: self.clock.clone(),
            metrics: Arc::new(IgnoreDurations),
        }));
        let node = self.api.get("nodes", "", "n").expect("a node");
        let uid: Arc<str> = node["metadata"]["uid"].as_str().expect("a UID").into();
        let (_, node_uid) = watch::channel(Some(uid));
        tasks.spawn(mirror::run(MirrorParts {
            client: self.client.clone(),
            node_name: "n".into(),
            node_uid,
            desired: self.manifests.subscribe(),
            listed: wanted.clone(),
            board: Arc::clone(&self.board),
            api,
        }));
        tasks.spawn(events::run(EventParts {
            client: self.client.clone(),
            recorder: self.recorder.clone(),
            node_name: "n".into(),
            qps: 50.0,
            burst: 100,
            dropped: Arc::new(AtomicU64::new(0)),
        }));
        tasks.spawn(live(
            Arc::clone(&self.lives),
            Arc::clone(&self.board),
            wanted,
            self.manifests.subscribe(),
        ));
    }

    fn lives(&self) -> MutexGuard<'_, Lives> {
        self.lives.lock()
    }

    pub(crate) fn now(&self) -> Duration {
        self.began.elapsed()
    }

    pub(crate) fn create(&self, name: &str, policy: &str) {
        let pod = json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {
                "nodeName": "n",
                "restartPolicy": policy,
                "containers": [{"name": "a", "image": "x"}],
            },
        });
        self.api.create("pods", &pod).expect("a pod");
    }

    /// Writes a manifest.
    pub(crate) fn manifest(&self, name: &str, image: &str) {
        let text = format!(
            "{{apiVersion: v1, kind: Pod, metadata: {{name: {name}, labels: null}}, \
             spec: {{nodeSelector: null, containers: [{{name: a, image: {image}, env: null}}]}}}}"
        );
        let context = ParseContext {
            node_name: "n",
            source: PodSource::File,
            origin: "test",
            adopted_uid: None,
            now: self.clock.now(),
        };
        let raw = decode(&text).pods.remove(0).expect("a pod");
        let pod = Arc::new(parse(raw, &context).expect("a valid pod"));
        self.manifests.send_modify(|desired| {
            Arc::make_mut(desired).pods.insert(pod.name.clone(), pod);
        });
    }

    pub(crate) fn remove_manifest(&self, name: &str) {
        let name = PodName::new("default", &format!("{name}-n"));
        self.manifests.send_modify(|desired| {
            Arc::make_mut(desired).pods.remove(&name);
        });
    }

    pub(crate) fn event(&self, pod: &str, kind: EventType, reason: &str, message: &str) {
        let subject = Subject::Pod {
            name: PodName::new("default", pod),
            uid: None,
            field_path: "".into(),
        };
        self.recorder.record(subject, kind, reason, message);
    }

    pub(crate) async fn wait(
        &self,
        pod: &str,
        seconds: u64,
        wanted: impl Fn(Option<&Value>) -> bool,
    ) -> Option<Value> {
        let limit = Duration::from_secs(seconds);
        let found = self
            .api
            .wait_for(("pods", "default", pod), limit, wanted)
            .await;
        found.unwrap_or_else(|error| panic!("{error}"))
    }

    /// From now on pods do only what they are told.
    pub(crate) fn calm(&self) {
        self.lives().calm();
    }

    /// Changes the readiness of every running pod; tells of how many.
    pub(crate) fn flip_all(&self) -> usize {
        self.lives().flip_all(&self.board)
    }

    /// Waits until the API server has the status of every pod of the node, and no other pod.
    pub(crate) async fn agrees(&self, seconds: u64) {
        let agreed = timeout(Duration::from_secs(seconds), async {
            while self.difference().is_some() {
                sleep(Duration::from_secs(1)).await;
            }
        });
        if agreed.await.is_err() {
            panic!("{:?}", self.difference());
        }
    }

    fn difference(&self) -> Option<String> {
        let pods = self.api.list("pods");
        let by_name: BTreeMap<_, _> = pods
            .iter()
            .map(|pod| (pod["metadata"]["name"].as_str().unwrap_or_default(), pod))
            .collect();
        for (_, _, entry) in self.board.list() {
            let name = &*entry.pod.name.name;
            let Some(pod) = by_name.get(name) else {
                return Some(format!("{name} is missing"));
            };
            let (ours, theirs) = (entry.status.phase.as_str(), &pod["status"]["phase"]);
            if *theirs != ours {
                return Some(format!("{name}: {ours} here, {theirs} there"));
            }
            let ready = entry
                .status
                .condition("Ready")
                .map(|one| one.status.as_str());
            let shown = pod["status"]["conditions"].as_array().into_iter().flatten();
            let mut shown = shown
                .filter(|one| one["type"] == "Ready")
                .map(|one| one["status"].as_str());
            if shown.next_back().flatten() != ready {
                return Some(format!("{name}: Ready is {ready:?} here"));
            }
            let count = entry.status.containers[0].restart_count;
            if pod["status"]["containerStatuses"][0]["restartCount"] != count {
                return Some(format!("{name}: {count} restarts here"));
            }
        }
        let deleted = pods
            .iter()
            .find(|pod| pod["metadata"]["deletionTimestamp"].is_string());
        if let Some(pod) = deleted {
            return Some(format!("{} is still there", pod["metadata"]["name"]));
        }
        (pods.len() != self.board.len()).then(|| "pods that the node does not have".to_owned())
    }

    /// Nothing happened that must not.
    pub(crate) fn check(&self) {
        let violations: Vec<_> = self
            .api
            .violations()
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(violations, [""; 0]);
    }
}

/// Lets pods live.
async fn live(
    lives: Arc<Mutex<Lives>>,
    board: Arc<PodBoard>,
    wanted: watch::Receiver<Arc<Desired>>,
    manifests: watch::Receiver<Arc<Desired>>,
) {
    loop {
        sleep(Duration::from_millis(300)).await;
        let (wanted, manifests) = (wanted.borrow().clone(), manifests.borrow().clone());
        // Until the API server was heard nobody knows what to end.
        let pods: Option<Vec<Arc<Pod>>> = wanted.sources_ready().then(|| {
            wanted
                .pods
                .values()
                .chain(manifests.pods.values())
                .cloned()
                .collect()
        });
        if let Some(pods) = pods {
            lives.lock().step(&pods, &board);
        }
    }
}
