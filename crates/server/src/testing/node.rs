//! A node made of collections.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use bytes::Bytes;
use parking_lot::Mutex;
use rubelet_http_core::resource::Resource;
use rubelet_streaming::SessionTarget;
use serde_json::{Value, json};

use super::{answers, echo::FakeSessions};
use crate::{
    ActionError, Collection, Expired, FilesAnswer, FilesRefusal, FilesRequest, Listing, LogError,
    LogRequest, LogStream, NetRefusal, NetRequest, NetStream, NodeView, Object, PodAction,
    PodAnswer, PodRef, RunRequest, RunningPod, SessionError, SessionRequest, StatsDocument,
    StatsRequest, SystemLog, Unhealthy, WatchStream,
};

/// The first version of each collection.
pub const FIRST: u64 = 1000;

/// The answer to a request for a log.
pub type LogAnswer = Box<dyn FnOnce(LogRequest) -> Result<LogStream, LogError> + Send>;

/// A node made of collections.
pub struct FakeNode {
    /// Its pods.
    pub pods: Arc<Collection>,
    /// Its events.
    pub events: Arc<Collection>,
    /// Its manifests.
    pub manifests: Arc<Collection>,
    /// What PLEG reported.
    pub lifecycle: Arc<Collection>,
    /// The answer to the next request for a log; without one there is no log.
    pub log: Mutex<Option<LogAnswer>>,
    /// What was done to pods, in words, oldest first.
    pub done: Mutex<Vec<String>>,
    /// Why nothing more can be done.
    pub refusal: Mutex<Option<ActionError>>,
    /// Whether the loops make progress.
    pub syncloop: Mutex<Result<(), Unhealthy>>,
    /// Whether the node is ready.
    pub ready: Mutex<Result<(), Unhealthy>>,
    /// The pods that have running containers.
    pub running: Mutex<Vec<RunningPod>>,
    /// Its sessions.
    pub sessions: FakeSessions,
}

impl Default for FakeNode {
    fn default() -> Self {
        let collection = || Arc::new(Collection::new(FIRST, 4));
        Self {
            pods: collection(),
            events: collection(),
            manifests: collection(),
            lifecycle: collection(),
            log: Mutex::default(),
            done: Mutex::default(),
            refusal: Mutex::default(),
            syncloop: Mutex::new(Ok(())),
            ready: Mutex::new(Ok(())),
            running: Mutex::default(),
            sessions: FakeSessions::default(),
        }
    }
}

impl FakeNode {
    fn collection(&self, resource: Resource) -> &Arc<Collection> {
        match resource {
            Resource::Pods => &self.pods,
            Resource::Events => &self.events,
            Resource::Manifests => &self.manifests,
            Resource::LifecycleEvents => &self.lifecycle,
        }
    }

    /// Whether there is a pod of that name and UID.
    fn knows(&self, pod: &PodRef, uid: Option<&str>) -> Result<(), SessionError> {
        let items = self.pods.listing().items;
        let mut items = items.iter();
        let found = items
            .find(|object| *object.namespace == *pod.namespace && *object.name == *pod.name)
            .ok_or(SessionError::NoPod)?;
        let found = found.to_json(Resource::Pods)["metadata"]["uid"].clone();
        match uid.is_none_or(|uid| found == uid) {
            true => Ok(()),
            false => Err(SessionError::OtherUid),
        }
    }
}

#[async_trait]
impl NodeView for FakeNode {
    fn list(&self, resource: Resource) -> Listing {
        self.collection(resource).listing()
    }
    fn watch(&self, resource: Resource, since: u64) -> Result<WatchStream, Expired> {
        self.collection(resource).watch(since)
    }
    async fn container_log(&self, request: LogRequest) -> Result<LogStream, LogError> {
        let answer = self.log.lock().take();
        match answer {
            Some(answer) => answer(request),
            None => Err(LogError::NotFound(format!(
                "{} has no log",
                request.container
            ))),
        }
    }
    async fn system_log(&self, path: Vec<String>) -> Result<SystemLog, LogError> {
        let path: Vec<&str> = path.iter().map(String::as_str).collect();
        match path.as_slice() {
            [] => Ok(SystemLog::Directory(vec![
                "<b>:1.log".to_owned(),
                "pods/".to_owned(),
            ])),
            ["<b>:1.log"] => {
                let piece = Ok(Bytes::from_static(b"<b>\n"));
                Ok(SystemLog::File {
                    is_text: true,
                    content: Box::pin(futures_util::stream::iter([piece])),
                })
            }
            ["away"] => Err(LogError::BadRequest("it leads out".to_owned())),
            _ => Err(LogError::NotFound("no such file".to_owned())),
        }
    }
    async fn act(&self, pod: &PodRef, action: PodAction) -> Result<PodAnswer, ActionError> {
        if let Some(error) = self.refusal.lock().clone() {
            return Err(error);
        }
        let items = self.pods.listing().items;
        let found = items
            .into_iter()
            .find(|object| *object.namespace == *pod.namespace && *object.name == *pod.name)
            .ok_or(ActionError::NotFound)?;
        let json = found.to_json(Resource::Pods);
        let (what, answer) = match action {
            PodAction::Restart { container } => (
                format!("restart {container:?}"),
                PodAnswer::Document(json!({ "containers": [] })),
            ),
            PodAction::Delete { grace } => (format!("delete {grace:?}"), PodAnswer::Pod(found)),
            PodAction::PatchStatus(patch) => {
                let changes = patch.conditions(&json)?;
                let set: Vec<_> = changes.set.iter().map(|one| &one.kind).collect();
                (
                    format!("set {set:?} remove {:?}", changes.removed),
                    PodAnswer::Pod(found),
                )
            }
            PodAction::AddEphemeral(patch) => {
                let added = patch.ephemeral_containers(&json)?;
                let names: Vec<_> = added.iter().map(|one| &one["name"]).collect();
                (format!("add {names:?}"), PodAnswer::Pod(found))
            }
            PodAction::Why => (
                "why".to_owned(),
                PodAnswer::Document(json!({ "phase": "Running" })),
            ),
        };
        let done = format!("{}/{}: {what}", pod.namespace, pod.name);
        self.done.lock().push(done);
        Ok(answer)
    }
    async fn session(&self, request: &SessionRequest) -> Result<SessionTarget, SessionError> {
        let known = self.knows(&request.pod, request.uid.as_deref());
        self.sessions.session(known, request)
    }
    async fn net(&self, request: NetRequest) -> Result<NetStream, NetRefusal> {
        answers::net(request).await
    }
    async fn files(&self, request: FilesRequest) -> Result<FilesAnswer, FilesRefusal> {
        answers::files(request).await
    }
    async fn run(&self, request: &RunRequest) -> Result<Bytes, SessionError> {
        let known = self.knows(&request.pod, request.uid.as_deref());
        self.sessions.run(known, request)
    }
    async fn stats(&self, request: StatsRequest) -> String {
        match request.document {
            StatsDocument::LogMetrics => "# TYPE d gauge\nd 1\n".to_owned(),
            StatsDocument::ResourceMetrics => "# TYPE b gauge\nb 1\n".to_owned(),
            StatsDocument::CadvisorMetrics => "# TYPE c gauge\nc 1\n".to_owned(),
            StatsDocument::Summary {
                only_cpu_and_memory,
            } => {
                let live = request.live;
                json!({ "node": { "live": live, "short": only_cpu_and_memory } }).to_string()
            }
        }
    }
    fn session_idle_timeout(&self) -> Duration {
        *self.sessions.idle_timeout.lock()
    }
    fn config(&self) -> Value {
        json!({ "kind": "KubeletConfiguration" })
    }
    fn syncloop(&self) -> Result<(), Unhealthy> {
        self.syncloop.lock().clone()
    }
    fn ready(&self) -> Result<(), Unhealthy> {
        self.ready.lock().clone()
    }
    fn metrics(&self) -> String {
        "# TYPE a counter\na 1\n".to_owned()
    }
    fn summary(&self) -> String {
        format!("{} pods", self.pods.listing().items.len())
    }

    fn running_pods(&self) -> Vec<RunningPod> {
        self.running.lock().clone()
    }

    fn probe_metrics(&self) -> String {
        "# TYPE prober_probe_total counter\nprober_probe_total 1\n".to_owned()
    }
}

/// A pod with one label and one container for each name.
#[must_use]
pub fn pod(namespace: &str, name: &str, app: &str, containers: &[&str]) -> Object {
    phased_pod(namespace, name, app, containers, "Running")
}

/// As [`pod`], in that phase.
#[must_use]
pub fn phased_pod(
    namespace: &str,
    name: &str,
    app: &str,
    containers: &[&str],
    phase: &str,
) -> Object {
    let containers: Vec<Value> = containers
        .iter()
        .map(|name| json!({ "name": name }))
        .collect();
    let json = json!({
        "metadata": {
            "namespace": namespace, "name": name, "uid": format!("uid-{name}"),
            "labels": { "app": app },
        },
        "spec": { "nodeName": "n1", "containers": containers },
        "status": { "phase": phase },
    });
    Object::new(namespace, name, move || json.clone())
}
