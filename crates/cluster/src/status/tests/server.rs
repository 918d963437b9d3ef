//! An API server that keeps statuses, with faults on demand.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
    time::Duration,
};

use parking_lot::{Mutex, MutexGuard};
use rubelet_base::{PodName, PodUid};
use rubelet_node_state::{board::Board, clock::Clock, pod_board::PodBoard};
use rubelet_server::patched;
use serde_json::{Value, json};
use tokio::{
    sync::watch,
    time::{Instant, sleep},
};

use super::super::{StatusContext, StatusMetrics, send::StatusApi, task::StatusTask};
use crate::{
    call_error::{CallError, CallErrorKind},
    source::{ApiPod, ApiPods},
    test_objects::at,
};

/// The API server and its watch.
#[derive(Clone)]
pub(super) struct Server {
    inner: Arc<Mutex<ServerState>>,
    pub(super) api: Arc<ApiPods>,
}

struct ServerState {
    pods: BTreeMap<PodName, ApiPod>,
    version: u64,
    latency: Duration,
    /// How long the watch takes; `None` while it reports nothing.
    echo: Option<Duration>,
    away: bool,
    refusals: VecDeque<CallErrorKind>,
    calls: Vec<(Duration, String)>,
    under_way: Vec<PodName>,
    most: usize,
    start: Instant,
}

impl Server {
    pub(super) fn new() -> Self {
        let inner = ServerState {
            pods: BTreeMap::new(),
            version: 100,
            latency: Duration::from_millis(10),
            echo: Some(Duration::from_millis(1)),
            away: false,
            refusals: VecDeque::new(),
            calls: Vec::new(),
            under_way: Vec::new(),
            most: 0,
            start: Instant::now(),
        };
        Self {
            inner: Arc::new(Mutex::new(inner)),
            api: Arc::new(Board::new()),
        }
    }

    fn lock(&self) -> MutexGuard<'_, ServerState> {
        self.inner.lock()
    }

    /// A client creates or changes a pod.
    pub(super) fn put(&self, mut copy: ApiPod) {
        let mut inner = self.lock();
        inner.version += 1;
        copy.resource_version = inner.version.to_string().into();
        inner.pods.insert(copy.name.clone(), copy.clone());
        drop(inner);
        self.api.set(copy.uid.clone(), copy);
    }

    /// A client changes the status of a pod.
    pub(super) fn write(&self, uid: &PodUid, patch: &Value) {
        let copy = self.stored(uid).expect("a pod");
        let copy = changed(&copy, patch);
        self.put(copy);
    }

    pub(super) fn stored(&self, uid: &PodUid) -> Option<ApiPod> {
        let inner = self.lock();
        inner.pods.values().find(|copy| copy.uid == *uid).cloned()
    }

    pub(super) fn status(&self, uid: &PodUid) -> Value {
        let copy = self.stored(uid).expect("a pod");
        serde_json::from_str(&copy.status).expect("JSON")
    }

    pub(super) fn set_away(&self, away: bool) {
        self.lock().away = away;
    }

    pub(super) fn set_echo(&self, echo: Option<Duration>) {
        self.lock().echo = echo;
    }

    pub(super) fn set_latency(&self, latency: Duration) {
        self.lock().latency = latency;
    }

    /// The next call gets this answer.
    pub(super) fn refuse(&self, kind: CallErrorKind) {
        self.lock().refusals.push_back(kind);
    }

    /// The calls since the last question, each with the time since the start in milliseconds.
    pub(super) fn calls(&self) -> Vec<(u128, String)> {
        let calls = std::mem::take(&mut self.lock().calls);
        let calls = calls.into_iter();
        calls.map(|(at, call)| (at.as_millis(), call)).collect()
    }

    /// How many calls were under way at the same time.
    pub(super) fn most(&self) -> usize {
        self.lock().most
    }

    fn begin(&self, pod: &PodName, call: String) -> Duration {
        let mut inner = self.lock();
        let at = inner.start.elapsed();
        inner.calls.push((at, call));
        assert!(!inner.under_way.contains(pod), "one call for each pod");
        inner.under_way.push(pod.clone());
        inner.most = inner.most.max(inner.under_way.len());
        inner.latency
    }

    fn end(&self, pod: &PodName, uid: &str) -> Result<ApiPod, CallError> {
        let mut inner = self.lock();
        inner.under_way.retain(|other| other != pod);
        if inner.away {
            return refused(CallErrorKind::Unreachable);
        }
        if let Some(kind) = inner.refusals.pop_front() {
            return refused(kind);
        }
        match inner.pods.get(pod) {
            None => refused(CallErrorKind::NotFound),
            Some(copy) if copy.uid.as_str() != uid => refused(CallErrorKind::OtherUid),
            Some(copy) => Ok(copy.clone()),
        }
    }

    /// The watch reports a change after a while.
    fn report(&self, uid: PodUid, copy: Option<ApiPod>) {
        let Some(echo) = self.lock().echo else { return };
        let api = Arc::clone(&self.api);
        tokio::spawn(async move {
            sleep(echo).await;
            match copy {
                Some(copy) => api.set(uid, copy),
                None => api.remove(&uid),
            }
        });
    }
}

/// The status after a patch of its object.
pub(super) fn apply(status: &Value, patch: &Value) -> Value {
    const STRATEGIC: &str = "application/strategic-merge-patch+json";
    let object = json!({ "status": status });
    let patched = patched(&object, STRATEGIC, patch.to_string().as_bytes());
    let mut object = patched.expect("a known kind of patch").expect("a patch");
    object["status"].take()
}

fn refused<T>(kind: CallErrorKind) -> Result<T, CallError> {
    let text = format!("{kind:?}");
    Err(CallError { kind, text })
}

fn changed(copy: &ApiPod, patch: &Value) -> ApiPod {
    let status: Value = serde_json::from_str(&copy.status).expect("JSON");
    let status = apply(&status, &json!({ "status": patch }));
    let web = crate::test_objects::plain("any", "Always");
    let phase = crate::test_objects::copy(&web, "", &status).phase;
    ApiPod {
        status: status.to_string().into(),
        phase,
        ..copy.clone()
    }
}

impl StatusApi for Server {
    fn patch(
        &self,
        pod: &PodName,
        body: Value,
    ) -> impl Future<Output = Result<Box<str>, CallError>> + Send + 'static {
        let (server, pod) = (self.clone(), pod.clone());
        async move {
            let phase = body["status"]["phase"].as_str().unwrap_or("-");
            let latency = server.begin(&pod, format!("PATCH {} {phase}", pod.name));
            sleep(latency).await;
            let uid = body["metadata"]["uid"].as_str().expect("a precondition");
            let old = server.end(&pod, uid)?;
            let mut new = changed(&old, &body["status"]);
            if new != old {
                let mut inner = server.lock();
                inner.version += 1;
                new.resource_version = inner.version.to_string().into();
                inner.pods.insert(pod, new.clone());
            }
            server.report(new.uid.clone(), Some(new.clone()));
            Ok(new.resource_version)
        }
    }

    fn delete(
        &self,
        pod: &PodName,
        uid: &PodUid,
    ) -> impl Future<Output = Result<(), CallError>> + Send + 'static {
        let (server, pod, uid) = (self.clone(), pod.clone(), uid.clone());
        async move {
            let latency = server.begin(&pod, format!("DELETE {}", pod.name));
            sleep(latency).await;
            server.end(&pod, uid.as_str())?;
            server.lock().pods.remove(&pod);
            server.report(uid, None);
            Ok(())
        }
    }

    fn reopen_watch(&self) {}
}

/// A node at work.
pub(super) struct Node {
    pub(super) server: Server,
    pub(super) board: Arc<PodBoard>,
    pub(super) context: watch::Sender<StatusContext>,
    pub(super) lags: Arc<Lags>,
}

/// How long statuses waited, in milliseconds.
#[derive(Default)]
pub(super) struct Lags(Mutex<Vec<u128>>);

impl Lags {
    pub(super) fn take(&self) -> Vec<u128> {
        std::mem::take(&mut self.0.lock())
    }
}

impl StatusMetrics for Lags {
    fn sent(&self, lag: Duration) {
        self.0.lock().push(lag.as_millis());
    }

    fn synced(&self, _: Duration) {}
}

impl Node {
    pub(super) fn start(at_once: usize) -> Self {
        let server = Server::new();
        let board = Arc::new(Board::new());
        let (context, receiver) = watch::channel(StatusContext {
            host_ips: Arc::from([[192, 168, 0, 1].into()]),
            runtime: "containerd".into(),
        });
        let lags = Arc::new(Lags::default());
        let task = StatusTask::new(
            server.clone(),
            Arc::clone(&board),
            Arc::clone(&server.api),
            receiver,
            Clock::following_tokio(at(0)),
            Arc::clone(&lags) as Arc<dyn StatusMetrics>,
            at_once,
        );
        tokio::spawn(task.run());
        Self {
            server,
            board,
            context,
            lags,
        }
    }
}

/// Lets some time pass.
pub(super) async fn pass(millis: u64) {
    sleep(Duration::from_millis(millis)).await;
}
