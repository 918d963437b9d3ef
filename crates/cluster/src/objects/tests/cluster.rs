//! A model of the API server, as far as objects need it, and pods that use its objects.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc, time::Duration};

use async_trait::async_trait;
use jiff::Timestamp;
use parking_lot::{Mutex, MutexGuard};
use rubelet_api::{objects::PodObjects, parse::api_pod, pod::Pod};
use rubelet_kube::{ApiError, Change, WatchTarget};
use rubelet_node_state::{
    clock::Clock,
    host_error::HostError,
    objects::{ObjectRefs, ObjectSource},
};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{
    sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
    task::JoinHandle,
    time::sleep,
};

use crate::objects::{
    ChangeDetection, ClusterObjects, SecretsAtRest,
    api::{ObjectWatch, ObjectsApi},
    files::Files,
    wire::{WireAccount, WireObject, WireTokenRequest},
};

/// How the API server answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Mood {
    /// As it should.
    #[default]
    Well,
    /// There is no connection.
    Away,
    /// Each request hangs.
    Silent,
    /// The node may not.
    Forbids,
}

/// Objects by path.
pub(super) struct FakeApi {
    state: Mutex<ClusterState>,
    clock: Clock,
}

#[derive(Default)]
struct ClusterState {
    objects: BTreeMap<String, Value>,
    mood: Mood,
    watches: Vec<(WatchTarget, UnboundedSender<Change<WireObject>>)>,
    /// Requests, as `GET PATH`, `TOKEN PATH` and `WATCH PATH`.
    asked: Vec<String>,
    /// What the last token was asked for with.
    request: Value,
    tokens: usize,
    /// How far the API server's clock is ahead.
    skew: jiff::SignedDuration,
}

impl FakeApi {
    fn new(clock: Clock) -> Self {
        Self {
            state: Mutex::default(),
            clock,
        }
    }

    /// There is this object, at this path.
    pub(super) fn put(&self, path: &str, mut object: Value) {
        let parts: Vec<_> = path.split('/').collect();
        object["metadata"]["name"] = parts[parts.len() - 1].into();
        if let Some(at) = parts.iter().position(|part| *part == "namespaces") {
            object["metadata"]["namespace"] = parts[at + 1].into();
        }
        let mut state = self.state();
        state.objects.insert(path.to_owned(), object.clone());
        state.tell(path, || Change::Applied(wire(&object)));
    }

    /// There is no object at this path any more.
    pub(super) fn delete(&self, path: &str) {
        let mut state = self.state();
        let object = state.objects.remove(path).expect("an object");
        state.tell(path, || Change::Deleted(wire(&object)));
    }

    pub(super) fn set_skew(&self, skew: jiff::SignedDuration) {
        self.state().skew = skew;
    }

    pub(super) fn set_mood(&self, mood: Mood) {
        let mut state = self.state();
        state.mood = mood;
        if mood == Mood::Well {
            let ClusterState {
                watches, objects, ..
            } = &*state;
            for (target, feed) in watches {
                // Whoever watched may be gone.
                let _ = feed.send(Change::Listed(listed(objects, target)));
            }
        }
    }

    /// How many requests began with this.
    pub(super) fn asked(&self, begin: &str) -> usize {
        let state = self.state();
        let asked = state.asked.iter();
        asked.filter(|one| one.starts_with(begin)).count()
    }

    /// What the last token was asked for with.
    pub(super) fn token_request(&self) -> Value {
        self.state().request.clone()
    }

    fn state(&self) -> MutexGuard<'_, ClusterState> {
        self.state.lock()
    }

    async fn answer(&self, request: String) -> Result<(), ApiError> {
        let mood = {
            let mut state = self.state();
            state.asked.push(request);
            state.mood
        };
        match mood {
            Mood::Well => Ok(()),
            Mood::Away => Err(ApiError::TimedOut),
            Mood::Silent => std::future::pending().await,
            Mood::Forbids => Err(status(
                403,
                "no relationship found between node and this object",
            )),
        }
    }
}

impl ClusterState {
    fn tell(&mut self, path: &str, change: impl Fn() -> Change<WireObject>) {
        if self.mood != Mood::Well {
            return;
        }
        self.watches.retain(|(_, feed)| !feed.is_closed());
        for (target, feed) in &self.watches {
            if is_in(path, target) {
                let _ = feed.send(change());
            }
        }
    }
}

fn status(code: u16, message: &str) -> ApiError {
    ApiError::Status {
        code,
        reason: String::new(),
        message: message.to_owned(),
        retry_after: None,
    }
}

fn wire(object: &Value) -> WireObject {
    serde_json::from_value(object.clone()).expect("an object")
}

fn listed(objects: &BTreeMap<String, Value>, target: &WatchTarget) -> Vec<WireObject> {
    let found = objects.iter().filter(|(path, _)| is_in(path, target));
    found.map(|(_, object)| wire(object)).collect()
}

fn is_in(path: &str, target: &WatchTarget) -> bool {
    let (collection, name) = path.rsplit_once('/').expect("a path");
    let all = target.path.strip_prefix("/api/v1/");
    let in_collection = collection == target.path
        || all.is_some_and(|all| !all.contains('/') && collection.ends_with(&format!("/{all}")));
    let selector = target.field_selector.as_deref();
    in_collection && selector.is_none_or(|one| one == format!("metadata.name={name}"))
}

#[async_trait]
impl ObjectsApi for Arc<FakeApi> {
    async fn get(&self, path: &str) -> Result<WireObject, ApiError> {
        self.answer(format!("GET {path}")).await?;
        let object = self.state().objects.get(path).map(wire);
        object.ok_or_else(|| status(404, "not found"))
    }

    async fn account(&self, path: &str) -> Result<WireAccount, ApiError> {
        self.answer(format!("GET {path}")).await?;
        let state = self.state();
        let object = state.objects.get(path);
        let object = object.ok_or_else(|| status(404, "not found"))?;
        Ok(serde_json::from_value(object.clone()).expect("a service account"))
    }

    async fn token(&self, path: &str, request: &Value) -> Result<WireTokenRequest, ApiError> {
        self.answer(format!("TOKEN {path}")).await?;
        let seconds = request["spec"]["expirationSeconds"].as_i64().expect("it");
        let mut state = self.state();
        let now = self.clock.now() + state.skew;
        state.request = request.clone();
        state.tokens += 1;
        let answer = json!({
            "spec": {"expirationSeconds": seconds},
            "status": {
                "token": format!("token-{}", state.tokens),
                "expirationTimestamp": now + jiff::SignedDuration::from_secs(seconds),
            },
        });
        Ok(serde_json::from_value(answer).expect("an answer"))
    }

    fn watch(&self, target: WatchTarget) -> Box<dyn ObjectWatch> {
        let mut state = self.state();
        let (sender, receiver) = unbounded_channel();
        let selector = target.field_selector.as_deref().unwrap_or_default();
        let request = format!("WATCH {} {selector}", target.path);
        state.asked.push(request.trim_end().to_owned());
        if state.mood == Mood::Well {
            let list = listed(&state.objects, &target);
            sender
                .send(Change::Listed(list))
                .expect("the receiver is here");
        }
        state.watches.push((target, sender));
        Box::new(FakeFeed(receiver))
    }
}

struct FakeFeed(UnboundedReceiver<Change<WireObject>>);

#[async_trait]
impl ObjectWatch for FakeFeed {
    async fn next(&mut self) -> Change<WireObject> {
        match self.0.recv().await {
            Some(change) => change,
            None => std::future::pending().await,
        }
    }
}

/// An API server, a disk, and what is tested.
pub(super) struct Cluster {
    pub(super) api: Arc<FakeApi>,
    pub(super) objects: ClusterObjects,
    detection: ChangeDetection,
    clock: Clock,
    directory: TempDir,
    /// How the next start keeps secrets.
    pub(super) secrets: SecretsAtRest,
    running: JoinHandle<()>,
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.running.abort();
    }
}

impl Cluster {
    pub(super) fn new() -> Self {
        Self::with(ChangeDetection::Watch)
    }

    pub(super) fn with(detection: ChangeDetection) -> Self {
        let start = Timestamp::from_second(1_700_000_000).expect("a time");
        let clock = Clock::following_tokio(start);
        let api = Arc::new(FakeApi::new(clock.clone()));
        let directory = tempfile::tempdir().expect("a directory for temporary files");
        let secrets = SecretsAtRest::Encrypted {
            credential: None,
            key_file: directory.path().join("secrets.key"),
            node_name: "n".into(),
        };
        let (objects, running) = start_objects(&api, &clock, &directory, &secrets, detection);
        Self {
            api,
            objects,
            detection,
            clock,
            directory,
            secrets,
            running,
        }
    }

    /// The agent restarts without its memory.
    pub(super) async fn restart(&mut self) {
        self.objects.flush().await;
        self.running.abort();
        let started = start_objects(
            &self.api,
            &self.clock,
            &self.directory,
            &self.secrets,
            self.detection,
        );
        (self.objects, self.running) = started;
    }

    pub(super) fn directory(&self) -> PathBuf {
        self.directory.path().join("objects")
    }

    /// A config map with the key `k`.
    pub(super) fn put_map(&self, name: &str, value: &str) {
        let path = format!("/api/v1/namespaces/default/configmaps/{name}");
        self.api.put(&path, json!({"data": {"k": value}}));
    }

    /// What volumes of the pod are made of.
    pub(super) async fn volumes(&self, pod: &Arc<Pod>) -> Result<PodObjects, HostError> {
        self.objects.objects(pod, ObjectRefs::Volumes).await
    }

    /// What the environment of the pod's only container is made of.
    pub(super) async fn env(&self, pod: &Arc<Pod>) -> Result<PodObjects, HostError> {
        let refs = ObjectRefs::Environment(&pod.spec.containers[0]);
        self.objects.objects(pod, refs).await
    }

    /// How often the pod was notified of a change.
    pub(super) fn told(&self, pod: &Pod) -> u64 {
        *self.objects.changes(&pod.uid).borrow()
    }
}

fn start_objects(
    api: &Arc<FakeApi>,
    clock: &Clock,
    directory: &TempDir,
    secrets: &SecretsAtRest,
    detection: ChangeDetection,
) -> (ClusterObjects, JoinHandle<()>) {
    let objects = ClusterObjects::with_api(
        Arc::new(Arc::clone(api)),
        clock.clone(),
        Files::new(directory.path().join("objects"), secrets.clone()),
        (detection, Arc::new(|| None)),
        Duration::from_secs(60),
    );
    let running = tokio::spawn(objects.clone().run());
    (objects, running)
}

/// A pod of the API server; its UID is its name.
pub(super) fn pod(name: &str, spec: Value, container: Value) -> Arc<Pod> {
    let mut object = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "uid": name},
        "spec": {"nodeName": "n", "containers": [{"name": "c", "image": "app:1"}]},
    });
    merge(&mut object["spec"], spec);
    merge(&mut object["spec"]["containers"][0], container);
    let parsed = api_pod(object, "n").unwrap_or_else(|errors| panic!("{errors:?}"));
    assert!(parsed.unsupported.is_empty(), "{:?}", parsed.unsupported);
    Arc::new(parsed.pod)
}

fn merge(into: &mut Value, from: Value) {
    let Value::Object(fields) = from else {
        return;
    };
    for (key, value) in fields {
        into[key] = value;
    }
}

/// A pod that mounts these config maps.
pub(super) fn with_maps(name: &str, maps: &[&str]) -> Arc<Pod> {
    let volumes: Vec<_> = maps
        .iter()
        .map(|map| json!({"name": map, "configMap": {"name": map}}))
        .collect();
    pod(name, json!({ "volumes": volumes }), json!({}))
}

/// A pod with a variable from this config map.
pub(super) fn with_variable(name: &str, map: &str) -> Arc<Pod> {
    let from = json!({"configMapKeyRef": {"name": map, "key": "k"}});
    let env = json!({"env": [{"name": "V", "valueFrom": from}]});
    pod(name, json!({}), env)
}

/// The value of the key `k` of that config map.
pub(super) fn value(objects: &PodObjects, map: &str) -> Option<String> {
    let data = &objects.config_maps.get(map)?.data;
    Some(String::from_utf8(data.get("k")?.to_vec()).expect("text"))
}

/// Lets all tasks do what they can at once.
pub(super) async fn settle() {
    sleep(Duration::from_millis(1)).await;
}

/// How many seconds.
pub(super) fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}
