//! An agent in its own thread, a screen that remembers what was written on it, and a user who types
//! commands.

use std::{
    collections::VecDeque,
    fs::File,
    io::{self, Write},
    path::{Path, PathBuf},
    sync::{Arc, Condvar, Mutex},
    thread::JoinHandle,
    time::Duration,
};

use async_trait::async_trait;
use bytes::Bytes;
use jiff::{SignedDuration, Timestamp};
use rubelet_runtime::RuntimeSettings;
use rubelet_server::{
    ActionError, Collection, Expired, FilesAnswer, FilesRefusal, FilesRequest, Listing, LogError,
    LogRequest, LogStream, NetRefusal, NetRequest, NetStream, NodeView, Object, PodAction,
    PodAnswer, PodRef, Resource, RunRequest, RunningPod, SessionError, SessionRequest,
    StatsRequest, Unhealthy, UnixSocket, WatchStream, bind_unix, clock, serve_unix,
};
use rubelet_streaming::SessionTarget;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::oneshot;

use super::super::{Binary, CommandLine, streams::Streams, terminal::Terminal};

/// A program with nothing to say of itself, and an embedded runtime with defaults.
const BINARY: Binary = Binary {
    build_info: || json!({}),
    runtime_settings: |options, _| Ok(RuntimeSettings::new(&options.root_dir, &options.run_dir)),
};

type LogAnswer = Result<LogStream, LogError>;

pub(super) struct Node {
    pub(super) pods: Arc<Collection>,
    pub(super) events: Arc<Collection>,
    pub(super) manifests: Arc<Collection>,
    pub(super) lifecycle: Arc<Collection>,
    pub(super) log_answers: Mutex<VecDeque<LogAnswer>>,
    pub(super) log_requests: Mutex<Vec<LogRequest>>,
    /// What was done to pods, in words.
    pub(super) actions: Mutex<Vec<String>>,
    /// What is answered to that; the pod where there is nothing.
    pub(super) action_answers: Mutex<VecDeque<Result<PodAnswer, ActionError>>>,
    /// The summaries to answer with; the last one again and again.
    pub(super) summaries: Mutex<VecDeque<Value>>,
    /// The root directory of every container.
    pub(super) root: TempDir,
}

impl Node {
    fn collection(&self, resource: Resource) -> &Arc<Collection> {
        match resource {
            Resource::Pods => &self.pods,
            Resource::Events => &self.events,
            Resource::Manifests => &self.manifests,
            Resource::LifecycleEvents => &self.lifecycle,
        }
    }

    pub(super) fn put(&self, resource: Resource, json: Value) {
        let part = |name: &str| {
            json["metadata"][name]
                .as_str()
                .unwrap_or_default()
                .to_owned()
        };
        let (namespace, name) = (part("namespace"), part("name"));
        self.collection(resource)
            .put(Object::new(&namespace, &name, move || json.clone()));
    }
}

#[async_trait]
impl NodeView for Node {
    fn list(&self, resource: Resource) -> Listing {
        self.collection(resource).listing()
    }
    fn watch(&self, resource: Resource, since: u64) -> Result<WatchStream, Expired> {
        self.collection(resource).watch(since)
    }
    async fn container_log(&self, request: LogRequest) -> Result<LogStream, LogError> {
        self.log_requests.lock().unwrap().push(request);
        let answer = self.log_answers.lock().unwrap().pop_front();
        answer.expect("the test gave an answer")
    }
    async fn act(&self, pod: &PodRef, action: PodAction) -> Result<PodAnswer, ActionError> {
        let items = self.pods.listing().items;
        let found = items
            .into_iter()
            .find(|object| *object.namespace == *pod.namespace && *object.name == *pod.name)
            .ok_or(ActionError::NotFound)?;
        let what = match action {
            PodAction::Restart { container } => format!("restart {container:?}"),
            PodAction::Delete { grace } => format!("delete {grace:?}"),
            PodAction::Why => "why".to_owned(),
            PodAction::PatchStatus(_) => "patch status".to_owned(),
            PodAction::AddEphemeral(patch) => {
                let added = patch.ephemeral_containers(&found.to_json(Resource::Pods))?;
                format!("add {}", Value::from(added))
            }
        };
        let done = format!("{}/{}: {what}", pod.namespace, pod.name);
        self.actions.lock().unwrap().push(done);
        let answer = self.action_answers.lock().unwrap().pop_front();
        answer.unwrap_or(Ok(PodAnswer::Pod(found)))
    }
    async fn session(&self, request: &SessionRequest) -> Result<SessionTarget, SessionError> {
        Ok(super::container::target(request))
    }
    async fn net(&self, request: NetRequest) -> Result<NetStream, NetRefusal> {
        super::net::answer(&request)
    }
    async fn files(&self, request: FilesRequest) -> Result<FilesAnswer, FilesRefusal> {
        super::container::files(self.root.path(), request).await
    }
    async fn run(&self, _: &RunRequest) -> Result<Bytes, SessionError> {
        Err(SessionError::NotRunning)
    }
    async fn stats(&self, request: StatsRequest) -> String {
        assert!(request.live);
        let mut summaries = self.summaries.lock().unwrap();
        let next = summaries.pop_front().expect("the test gave a summary");
        if summaries.is_empty() {
            summaries.push_back(next.clone());
        }
        next.to_string()
    }
    fn session_idle_timeout(&self) -> Duration {
        Duration::ZERO
    }
    fn config(&self) -> Value {
        json!({})
    }
    fn syncloop(&self) -> Result<(), Unhealthy> {
        Ok(())
    }
    fn ready(&self) -> Result<(), Unhealthy> {
        Ok(())
    }
    fn metrics(&self) -> String {
        String::new()
    }
    fn summary(&self) -> String {
        String::new()
    }
    fn running_pods(&self) -> Vec<RunningPod> {
        Vec::new()
    }
    fn probe_metrics(&self) -> String {
        String::new()
    }
}

/// A running agent.
pub(super) struct TestAgent {
    pub(super) node: Arc<Node>,
    pub(super) socket: PathBuf,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
    directory: Arc<TempDir>,
}

impl TestAgent {
    pub(super) fn start() -> Self {
        Self::start_in(Arc::new(tempfile::tempdir().unwrap()), 1000)
    }

    fn start_in(directory: Arc<TempDir>, first_version: u64) -> Self {
        let collection = || Arc::new(Collection::new(first_version, 16));
        let node = Arc::new(Node {
            pods: collection(),
            events: collection(),
            manifests: collection(),
            lifecycle: collection(),
            log_answers: Mutex::default(),
            log_requests: Mutex::default(),
            actions: Mutex::default(),
            action_answers: Mutex::default(),
            summaries: Mutex::default(),
            root: tempfile::tempdir().unwrap(),
        });
        let socket = directory.path().join("rubelet.sock");
        let (stop, stopped) = oneshot::channel::<()>();
        let (listening, ready) = std::sync::mpsc::channel();
        let (view, path) = (node.clone(), socket.clone());
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build();
            runtime.unwrap().block_on(async {
                let listener = bind_unix(&UnixSocket::new(path)).await.unwrap();
                listening.send(()).unwrap();
                let stopped = async {
                    let _ = stopped.await;
                };
                serve_unix(listener, view, Arc::new(()), None, stopped).await;
            });
        });
        ready.recv().unwrap();
        Self {
            node,
            socket,
            stop: Some(stop),
            thread: Some(thread),
            directory,
        }
    }

    /// Stops the agent; clients that follow something are disconnected.
    pub(super) fn stop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }

    /// Stops the agent and starts another one on the same socket, with nothing in it yet.
    pub(super) fn restart(&mut self) -> Self {
        self.stop();
        Self::start_in(self.directory.clone(), 2000)
    }

    /// Types a command; returns when it has ended.
    pub(super) fn type_in(&self, command: &str) -> Ended {
        type_words(self.words(command), &Screens::default(), false)
    }

    /// Types a command in a pipeline: with text on stdin.
    pub(super) fn pipe(&self, command: &str, stdin: &str) -> Ended {
        type_in_pipeline(self.words(command), stdin)
    }

    /// Types a command that continues until its reader leaves.
    pub(super) fn follow(&self, command: &str) -> Following {
        let screens = Screens::default();
        let (words, shown) = (self.words(command), screens.clone());
        let thread = std::thread::spawn(move || type_words(words, &shown, false));
        Following {
            screen: screens.out,
            errors: screens.err,
            thread,
        }
    }

    /// The command with the option that leads to this agent.
    pub(super) fn words(&self, command: &str) -> Vec<String> {
        words_at(&self.socket, command)
    }
}

/// A command with the option that leads to a socket.
pub(super) fn words_at(socket: &Path, command: &str) -> Vec<String> {
    let socket = ["--socket", socket.to_str().unwrap()];
    let words = socket.into_iter().chain(command.split_whitespace());
    words.map(str::to_owned).collect()
}

impl Drop for TestAgent {
    fn drop(&mut self) {
        self.stop();
    }
}

/// How a command ended.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Ended {
    pub(super) code: u8,
    pub(super) out: String,
    pub(super) err: String,
}

impl Ended {
    /// The data of a command that went well and had nothing to say besides.
    #[track_caller]
    pub(super) fn data(self) -> String {
        assert_eq!((self.code, self.err.as_str()), (0, ""));
        self.out
    }

    /// The error of a command that failed without printing data.
    #[track_caller]
    pub(super) fn error(self, code: u8) -> String {
        assert_eq!((self.code, self.out.as_str()), (code, ""), "{}", self.err);
        self.err
    }
}

pub(super) fn type_words(words: Vec<String>, screens: &Screens, color: bool) -> Ended {
    let (mut out, mut err) = (screens.out.clone(), screens.err.clone());
    let program = std::iter::once("rubelet".to_owned()).chain(words);
    let code = match CommandLine::parse(program) {
        Ok(CommandLine::Client(call)) => {
            let mut terminal = Terminal::new(&mut out, &mut err, color);
            call.run(BINARY, &mut terminal)
        }
        Ok(other) => panic!("{other:?} is no client command"),
        Err(error) => {
            write!(err, "{error}").unwrap();
            u8::try_from(error.exit_code()).unwrap()
        }
    };
    Ended {
        code,
        out: screens.out.text(),
        err: screens.err.text(),
    }
}

/// A command whose stdin, stdout and stderr are pipes.
fn type_in_pipeline(words: Vec<String>, stdin: &str) -> Ended {
    let (mut to, input) = pipe();
    let ((stdout, out), (stderr, err)) = (pipe(), pipe());
    let text = stdin.to_owned();
    // The reader may be gone: then the pipe is closed.
    let writer = std::thread::spawn(move || drop(to.write_all(text.as_bytes())));
    let readers = [out, err].map(|pipe| std::thread::spawn(move || io::read_to_string(pipe)));
    let mut screens = (stdout.try_clone().unwrap(), stderr.try_clone().unwrap());
    let program = std::iter::once("rubelet".to_owned()).chain(words);
    let Ok(CommandLine::Client(call)) = CommandLine::parse(program) else {
        panic!("no client command");
    };
    let streams = Streams {
        stdin: input.into(),
        stdout: stdout.into(),
        stderr: stderr.into(),
    };
    let code = {
        let terminal = Terminal::new(&mut screens.0, &mut screens.1, false);
        call.run(BINARY, &mut terminal.with_streams(streams))
    };
    drop(screens);
    writer.join().unwrap();
    let [out, err] = readers.map(|reader| reader.join().unwrap().unwrap());
    Ended { code, out, err }
}

/// The writing end of a pipe, and the reading one.
fn pipe() -> (File, File) {
    let (reads, writes) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).unwrap();
    (writes.into(), reads.into())
}

/// stdout and stderr.
#[derive(Clone, Default)]
pub(super) struct Screens {
    pub(super) out: Screen,
    pub(super) err: Screen,
}

/// Something that is written on, watched, and closed.
#[derive(Clone, Default)]
pub(super) struct Screen(Arc<(Mutex<(String, bool)>, Condvar)>);

impl Screen {
    pub(super) fn text(&self) -> String {
        self.0.0.lock().unwrap().0.clone()
    }

    /// Waits until that many lines are there, and takes them away.
    pub(super) fn take_lines(&self, count: usize) -> Vec<String> {
        let (state, changed) = &*self.0;
        let waiting = Duration::from_secs(60);
        let (mut state, timeout) = changed
            .wait_timeout_while(state.lock().unwrap(), waiting, |(text, _)| {
                text.matches('\n').count() < count
            })
            .unwrap();
        assert!(!timeout.timed_out(), "only this came: {}", state.0);
        std::mem::take(&mut state.0)
            .lines()
            .map(str::to_owned)
            .collect()
    }

    /// From now on the output is not read.
    pub(super) fn close(&self) {
        self.0.0.lock().unwrap().1 = true;
    }
}

impl Write for Screen {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut state = self.0.0.lock().unwrap();
        if state.1 {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        state.0.push_str(std::str::from_utf8(bytes).unwrap());
        self.0.1.notify_all();
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A command that continues.
pub(super) struct Following {
    pub(super) screen: Screen,
    pub(super) errors: Screen,
    pub(super) thread: JoinHandle<Ended>,
}

/// A running pod, three days and five hours old.
pub(super) fn pod(namespace: &str, name: &str, app: &str) -> Value {
    json!({
        "metadata": {
            "name": name, "namespace": namespace, "uid": format!("uid-{name}"),
            "labels": { "app": app }, "creationTimestamp": ago(77),
        },
        "spec": { "nodeName": "n1", "containers": [{ "name": "main", "image": "busybox" }] },
        "status": {
            "phase": "Running",
            "podIPs": [{ "ip": "10.0.0.7" }],
            "containerStatuses": [{
                "name": "main", "ready": true, "restartCount": 0,
                "state": { "running": { "startedAt": ago(77) } },
            }],
        },
    })
}

/// A pod whose container has crashed twice, the last time six hours ago.
pub(super) fn crashing_pod(namespace: &str, name: &str) -> Value {
    let mut pod = pod(namespace, name, "crash");
    pod["status"]["containerStatuses"][0] = json!({
        "name": "main", "ready": false, "restartCount": 2,
        "state": { "waiting": { "reason": "CrashLoopBackOff" } },
        "lastState": { "terminated": { "exitCode": 1, "reason": "Error", "finishedAt": ago(9) } },
    });
    pod
}

/// A time some hours ago, far enough from the next whole hour for a slow test.
pub(super) fn ago(hours: i64) -> String {
    let then: Timestamp = clock::now() - SignedDuration::from_mins(hours * 60 + 20);
    then.to_string()
}

/// An event of a pod.
pub(super) fn event(namespace: &str, name: &str, pod: &str, hours: i64, message: &str) -> Value {
    json!({
        "metadata": { "name": name, "namespace": namespace },
        "involvedObject": { "kind": "Pod", "name": pod, "namespace": namespace },
        "type": "Normal", "reason": "Started", "message": message, "count": 1,
        "source": { "component": "kubelet" },
        "firstTimestamp": ago(hours), "lastTimestamp": ago(hours),
    })
}
