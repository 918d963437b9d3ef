//! A node made of collections, a server in front of it, and a client that speaks raw HTTP.

use std::{path::PathBuf, sync::Arc, time::Duration};

use async_trait::async_trait;
use bytes::Bytes;
use parking_lot::Mutex;
use rubelet_streaming::SessionTarget;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::UnixStream,
    sync::oneshot,
    task::JoinHandle,
};

use super::echo::FakeSessions;
use crate::{
    ActionError, Collection, Expired, FilesAnswer, FilesRefusal, FilesRequest, Listing, LogError,
    LogRequest, LogStream, NetRefusal, NetRequest, NetStream, NodeView, Object, PodAction,
    PodAnswer, PodRef, Resource, RunRequest, RunningPod, SessionError, SessionRequest, Unhealthy,
    UnixSocket, WatchStream, audit::AuditLog, bind_unix, serve_unix,
};

pub(crate) const FIRST: u64 = 1000;

type LogAnswer = Box<dyn FnOnce(LogRequest) -> Result<LogStream, LogError> + Send>;

pub(crate) struct FakeNode {
    pub(crate) pods: Arc<Collection>,
    pub(crate) events: Arc<Collection>,
    pub(crate) manifests: Arc<Collection>,
    pub(crate) lifecycle: Arc<Collection>,
    pub(crate) log: Mutex<Option<LogAnswer>>,
    /// What was done to pods, in words, oldest first.
    pub(crate) done: Mutex<Vec<String>>,
    /// Why nothing more can be done.
    pub(crate) refusal: Mutex<Option<ActionError>>,
    pub(crate) syncloop: Mutex<Result<(), String>>,
    pub(crate) ready: Mutex<Result<(), String>>,
    pub(crate) running: Mutex<Vec<RunningPod>>,
    pub(crate) sessions: FakeSessions,
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
        super::net::answer(request).await
    }
    async fn files(&self, request: FilesRequest) -> Result<FilesAnswer, FilesRefusal> {
        super::files::answer(request).await
    }
    async fn run(&self, request: &RunRequest) -> Result<Bytes, SessionError> {
        let known = self.knows(&request.pod, request.uid.as_deref());
        self.sessions.run(known, request)
    }
    fn session_idle_timeout(&self) -> Duration {
        *self.sessions.idle_timeout.lock()
    }
    fn config(&self) -> Value {
        json!({ "kind": "KubeletConfiguration" })
    }
    fn syncloop(&self) -> Result<(), Unhealthy> {
        self.syncloop.lock().clone().map_err(Unhealthy)
    }
    fn ready(&self) -> Result<(), Unhealthy> {
        self.ready.lock().clone().map_err(Unhealthy)
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
pub(crate) fn pod(namespace: &str, name: &str, app: &str, containers: &[&str]) -> Object {
    phased_pod(namespace, name, app, containers, "Running")
}

pub(crate) fn phased_pod(
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

pub(crate) struct TestServer {
    pub(crate) node: Arc<FakeNode>,
    pub(crate) path: PathBuf,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
    _directory: TempDir,
}

impl TestServer {
    pub(crate) async fn start() -> Self {
        Self::auditing(None).await
    }

    /// A server that records requests.
    pub(crate) async fn auditing(audit: Option<Arc<AuditLog>>) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("rubelet.sock");
        let listener = bind_unix(&UnixSocket::new(&path)).await.unwrap();
        let node = Arc::new(FakeNode::default());
        let (stop, stopped) = oneshot::channel::<()>();
        let view: Arc<dyn NodeView> = node.clone();
        let task = tokio::spawn(serve_unix(
            listener,
            view,
            Arc::new(()),
            audit,
            async move {
                let _ = stopped.await;
            },
        ));
        Self {
            node,
            path,
            stop: Some(stop),
            task,
            _directory: directory,
        }
    }

    /// A server with two pods in `default` and one in `kube-system`.
    pub(crate) async fn with_pods() -> Self {
        let server = Self::start().await;
        server.node.pods.put(pod("default", "web", "web", &["a"]));
        server
            .node
            .pods
            .put(pod("default", "db", "db", &["a", "b"]));
        server
            .node
            .pods
            .put(pod("kube-system", "dns", "dns", &["a"]));
        server
    }

    pub(crate) async fn stop(mut self) {
        self.stop.take().unwrap().send(()).unwrap();
        self.task.await.unwrap();
    }

    pub(crate) async fn get(&self, path: &str) -> Reply {
        self.request("GET", path, "").await
    }

    pub(crate) async fn request(&self, method: &str, path: &str, headers: &str) -> Reply {
        let mut open = self.open(method, path, headers).await;
        let mut body = String::new();
        while let Some(piece) = open.piece().await {
            body.push_str(&piece);
        }
        Reply {
            code: open.code,
            headers: open.headers,
            body,
        }
    }

    /// Sends a request with a body of that media type.
    pub(crate) async fn send(&self, method: &str, path: &str, kind: &str, body: &str) -> Reply {
        let kind = match kind {
            "" => String::new(),
            kind => format!("Content-Type: {kind}\r\n"),
        };
        let headers = format!("{kind}Content-Length: {}\r\n", body.len());
        let mut open = self.open_with(method, path, &headers, body).await;
        let mut text = String::new();
        while let Some(piece) = open.piece().await {
            text.push_str(&piece);
        }
        Reply {
            code: open.code,
            headers: open.headers,
            body: text,
        }
    }

    /// Sends a request and reads the head of the answer.
    pub(crate) async fn open(&self, method: &str, path: &str, headers: &str) -> OpenReply {
        self.open_with(method, path, headers, "").await
    }

    async fn open_with(&self, method: &str, path: &str, headers: &str, body: &str) -> OpenReply {
        let mut stream = UnixStream::connect(&self.path).await.unwrap();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: node\r\nConnection: close\r\n{headers}\r\n{body}"
        );
        // A server that refuses by the head may close before it has read the body.
        let _ = stream.write_all(request.as_bytes()).await;
        OpenReply::read(BufReader::new(stream)).await
    }
}

#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) code: u16,
    pub(crate) headers: String,
    pub(crate) body: String,
}

impl Reply {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }

    /// Names of a list's items.
    pub(crate) fn names(&self) -> Vec<String> {
        let items = self.json()["items"].as_array().unwrap().clone();
        items
            .iter()
            .map(|item| item["metadata"]["name"].as_str().unwrap().to_owned())
            .collect()
    }
}

/// An answer whose body is still coming.
pub(crate) struct OpenReply {
    pub(crate) code: u16,
    pub(crate) headers: String,
    stream: BufReader<UnixStream>,
    chunked: bool,
    /// What the body still has, where its length was announced; nothing once it is complete.
    left: usize,
}

impl OpenReply {
    async fn read(mut stream: BufReader<UnixStream>) -> Self {
        let mut headers = String::new();
        while !headers.ends_with("\r\n\r\n") {
            assert_ne!(
                stream.read_line(&mut headers).await.unwrap(),
                0,
                "no complete head"
            );
        }
        headers.make_ascii_lowercase();
        let code = headers.split(' ').nth(1).unwrap().parse().unwrap();
        let length = headers.split("content-length: ").nth(1);
        let left = length.map_or(0, |rest| {
            rest.split("\r\n").next().unwrap().parse().unwrap()
        });
        let chunked = headers.contains("transfer-encoding: chunked");
        Self {
            code,
            headers,
            stream,
            chunked,
            left,
        }
    }

    /// The next piece of the body; `None` at its proper end.
    pub(crate) async fn piece(&mut self) -> Option<String> {
        self.try_piece().await.expect("the answer was cut off")
    }

    /// As [`piece`](Self::piece); an error where the answer is cut off.
    pub(crate) async fn try_piece(&mut self) -> Result<Option<String>, std::io::Error> {
        let mut length = std::mem::take(&mut self.left);
        if self.chunked {
            let mut line = String::new();
            self.stream.read_line(&mut line).await?;
            length = usize::from_str_radix(line.trim(), 16).map_err(std::io::Error::other)?;
        }
        let mut bytes = vec![0; length];
        self.stream.read_exact(&mut bytes).await?;
        if self.chunked {
            self.stream.read_exact(&mut [0; 2]).await?;
        }
        Ok((length > 0).then(|| String::from_utf8(bytes).unwrap()))
    }

    /// The next event of a watch: its type, the object's name and the object.
    pub(crate) async fn event(&mut self) -> (String, String, Value) {
        let piece = self.piece().await.expect("the watch has ended");
        let event: Value = serde_json::from_str(&piece).unwrap();
        let name = event["object"]["metadata"]["name"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        (
            event["type"].as_str().unwrap().to_owned(),
            name,
            event["object"].clone(),
        )
    }

    /// The next event as `TYPE name`.
    pub(crate) async fn change(&mut self) -> String {
        let (kind, name, _) = self.event().await;
        format!("{kind} {name}")
    }
}
