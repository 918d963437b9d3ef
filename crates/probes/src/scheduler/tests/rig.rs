//! A prober, the network and the runtime it talks to, and pods.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use jiff::Timestamp;
use parking_lot::Mutex;
use rubelet_api::{
    manifest::decode,
    parse::{ParseContext, parse},
    pod::{Pod, PodSource},
    probe::{HttpGet, ProbeHandler},
};
use rubelet_cri::{CriResult, RuntimeService, v1};
use rubelet_node_state::{
    clock::Clock,
    events::{Event, Recorder, Subject},
};
use rubelet_pod_plan::{ProbeKind, ProbeResult, ProbeTarget};
use tokio::time::{Instant, sleep};

use crate::{NetProbe, ProbeOutcome, ProbeReport, ProbeStatus, ProberHandle, ProberTask};

/// A moment in the test's day, at which the agent starts.
const START: i64 = 1_700_000_000;

/// A prober that is not running yet, and what it works with.
pub(super) struct Rig {
    pub(super) handle: ProberHandle,
    pub(super) net: Arc<FakeNet>,
    pub(super) runtime: Arc<FakeRuntime>,
    pub(super) clock: Clock,
    pub(super) task: Option<ProberTask>,
    recorder: Recorder,
}

impl Rig {
    pub(super) fn new() -> Self {
        let clock = Clock::following_tokio(Timestamp::from_second(START).unwrap());
        let recorder = Recorder::new(clock.clone());
        let net = Arc::new(FakeNet::new());
        let runtime = Arc::new(FakeRuntime::new());
        let (task, handle) = ProberTask::new(
            Arc::clone(&runtime) as _,
            Arc::clone(&net) as _,
            recorder.clone(),
            clock.clone(),
        );
        Self {
            handle,
            net,
            runtime,
            clock,
            task: Some(task),
            recorder,
        }
    }

    /// A rig whose prober runs.
    pub(super) fn running() -> Self {
        let mut rig = Self::new();
        let task = rig.task.take().unwrap();
        tokio::spawn(task.run());
        rig
    }

    /// Sets what is tried of a pod at 10.0.0.1.
    pub(super) fn set(&self, pod: &Arc<Pod>, targets: &[ProbeTarget]) {
        self.handle.set(pod, "10.0.0.1", targets.to_vec());
    }

    /// A probe of the container `app`, whose instance `id` was started now.
    pub(super) fn target(&self, kind: ProbeKind, id: &str) -> ProbeTarget {
        target(kind, id, self.clock.now())
    }

    /// What a probe says of an instance; `None` if nothing was said.
    pub(super) fn outcome(&self, pod: &Pod, id: &str, kind: ProbeKind) -> Option<ProbeResult> {
        let outcomes = Arc::clone(&self.handle.outcomes(&pod.uid).borrow());
        outcomes.get(&id.into(), kind)
    }

    /// The report of a probe of an instance.
    pub(super) fn report(&self, pod: &Pod, id: &str, kind: ProbeKind) -> Option<ProbeStatus> {
        let mut reports = self.handle.reports(&pod.uid).into_iter();
        reports.find(|report| report.id.as_str() == id && report.kind == kind)
    }

    /// Events, oldest first, as `FIELD TYPE REASON MESSAGE xCOUNT`.
    pub(super) fn events(&self) -> Vec<String> {
        let mut events = self.recorder.board().list();
        events.sort_by_key(|(_, version, event)| (event.first, *version));
        let line = |event: &Event| {
            let Subject::Pod { field_path, .. } = &event.subject else {
                panic!("{event:?}");
            };
            let (kind, reason) = (event.kind.as_str(), &event.reason);
            format!(
                "{field_path} {kind} {reason} {} x{}",
                event.message, event.count
            )
        };
        events.iter().map(|(_, _, event)| line(event)).collect()
    }
}

/// A probe of an instance of `app` that was started then. What counts until it says otherwise is
/// what a plan says of a new instance.
pub(super) fn target(kind: ProbeKind, id: &str, started_at: Timestamp) -> ProbeTarget {
    ProbeTarget {
        container: "app".into(),
        kind,
        id: id.into(),
        started_at,
        initial: match kind {
            ProbeKind::Startup => ProbeResult::Unknown,
            ProbeKind::Liveness => ProbeResult::Success,
            ProbeKind::Readiness => ProbeResult::Failure,
        },
    }
}

/// A pod with one container `app` and these fields, such as `livenessProbe: {...}`.
pub(super) fn pod(name: &str, fields: &str) -> Arc<Pod> {
    let text = format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}}}\nspec: {{containers: [{{name: app, image: i, {fields}}}]}}\n"
    );
    let context = ParseContext {
        node_name: "n",
        source: PodSource::File,
        origin: "/manifests/pod.yaml",
        adopted_uid: None,
        now: Timestamp::from_second(START).unwrap(),
    };
    let raw = decode(&text).pods.remove(0).expect("YAML of a pod");
    match parse(raw, &context) {
        Ok(pod) => Arc::new(pod),
        Err(errors) => panic!("{text}: {errors:?}"),
    }
}

/// A liveness probe over HTTP with these fields.
pub(super) fn live(fields: &str) -> String {
    format!("livenessProbe: {{httpGet: {{port: 80, path: /live}}, {fields}}}")
}

/// Waits.
pub(super) async fn pass(seconds: f64) {
    sleep(Duration::from_secs_f64(seconds)).await;
}

type Script<Q, A> = Mutex<Box<dyn FnMut(&Q) -> A + Send>>;

/// The network: notes attempts and answers them as the test says. Without a script all pass at
/// once.
pub(super) struct FakeNet {
    began: Instant,
    script: Script<Try, AttemptResult>,
    tries: Mutex<Vec<Try>>,
    under_way: Arc<AtomicUsize>,
}

/// One attempt.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Try {
    /// When it began, in seconds after the start, to 10 ms.
    pub(super) at: f64,
    /// The path of an HTTP probe, else empty.
    pub(super) path: String,
    pub(super) host: String,
}

/// What an attempt comes to.
#[derive(Debug, Clone)]
pub(super) struct AttemptResult {
    verdict: ProbeOutcome,
    output: String,
    takes: Duration,
    stalls: Duration,
}

pub(super) fn answers(verdict: ProbeOutcome, output: &str) -> AttemptResult {
    AttemptResult {
        verdict,
        output: output.into(),
        takes: Duration::ZERO,
        stalls: Duration::ZERO,
    }
}

pub(super) fn passes() -> AttemptResult {
    answers(ProbeOutcome::Passed, "ok")
}

pub(super) fn fails() -> AttemptResult {
    answers(
        ProbeOutcome::Failed,
        "HTTP probe failed with statuscode: 500",
    )
}

/// There is no answer.
pub(super) fn hangs() -> AttemptResult {
    passes().after(1e9)
}

impl AttemptResult {
    /// The same, after so many seconds.
    pub(super) fn after(self, seconds: f64) -> Self {
        let takes = Duration::from_secs_f64(seconds);
        Self { takes, ..self }
    }

    /// The same, but this process stands still for so many seconds before it sees it.
    pub(super) fn stalled(self, seconds: f64) -> Self {
        let stalls = Duration::from_secs_f64(seconds);
        Self { stalls, ..self }
    }
}

impl FakeNet {
    fn new() -> Self {
        Self {
            began: Instant::now(),
            script: Mutex::new(Box::new(|_| passes())),
            tries: Mutex::default(),
            under_way: Arc::default(),
        }
    }

    /// From now on attempts are answered by this script.
    pub(super) fn on(&self, script: impl FnMut(&Try) -> AttemptResult + Send + 'static) {
        *self.script.lock() = Box::new(script);
    }

    /// From now on attempts are answered like this, one after the other, and then all pass.
    pub(super) fn play(&self, answers: impl IntoIterator<Item = AttemptResult>) {
        let mut answers: Vec<AttemptResult> = answers.into_iter().collect();
        answers.reverse();
        self.on(move |_| answers.pop().unwrap_or_else(passes));
    }

    pub(super) fn tries(&self) -> Vec<Try> {
        self.tries.lock().clone()
    }

    /// When attempts began.
    pub(super) fn times(&self) -> Vec<f64> {
        self.tries().iter().map(|one| one.at).collect()
    }

    /// When attempts began, by their paths.
    pub(super) fn times_by_path(&self) -> BTreeMap<String, Vec<f64>> {
        let mut times = BTreeMap::<String, Vec<f64>>::new();
        for one in self.tries() {
            times.entry(one.path).or_default().push(one.at);
        }
        times
    }

    /// How many attempts are under way.
    pub(super) fn under_way(&self) -> usize {
        self.under_way.load(Ordering::SeqCst)
    }
}

struct UnderWay(Arc<AtomicUsize>);

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

#[async_trait]
impl NetProbe for FakeNet {
    async fn probe(&self, handler: &ProbeHandler, host: &str, timeout: Duration) -> ProbeReport {
        let began = Instant::now();
        let at = (self.began.elapsed().as_secs_f64() * 100.0).round() / 100.0;
        let path = match handler {
            ProbeHandler::Http(get) => get.path.to_string(),
            _ => String::new(),
        };
        let host = host.to_owned();
        let one = Try { at, path, host };
        self.tries.lock().push(one.clone());
        let answer = self.script.lock()(&one);
        self.under_way.fetch_add(1, Ordering::SeqCst);
        let _counted = UnderWay(Arc::clone(&self.under_way));
        sleep(answer.takes.min(timeout) + answer.stalls).await;
        let (verdict, output) = if answer.takes > timeout {
            (
                ProbeOutcome::TimedOut,
                "context deadline exceeded".to_owned(),
            )
        } else {
            (answer.verdict, answer.output)
        };
        let latency = began.elapsed();
        ProbeReport {
            verdict,
            output,
            latency,
        }
    }

    async fn hook(&self, _: &HttpGet, _: &str, _: Duration) -> ProbeReport {
        unreachable!("the prober runs no hooks")
    }
}

/// What a command comes to, after a time.
pub(super) type Exec = (Duration, CriResult<v1::ExecSyncResponse>);

/// The runtime: notes commands and answers them as the test says.
pub(super) struct FakeRuntime {
    began: Instant,
    script: Script<v1::ExecSyncRequest, Exec>,
    calls: Mutex<Vec<(f64, v1::ExecSyncRequest)>>,
}

/// A command that ended so, having printed that.
pub(super) fn exit(code: i32, stdout: &str, stderr: &str) -> Exec {
    let answer = v1::ExecSyncResponse {
        stdout: stdout.into(),
        stderr: stderr.into(),
        exit_code: code,
    };
    (Duration::ZERO, Ok(answer))
}

impl FakeRuntime {
    fn new() -> Self {
        Self {
            began: Instant::now(),
            script: Mutex::new(Box::new(|_| exit(0, "", ""))),
            calls: Mutex::default(),
        }
    }

    pub(super) fn on(&self, script: impl FnMut(&v1::ExecSyncRequest) -> Exec + Send + 'static) {
        *self.script.lock() = Box::new(script);
    }

    pub(super) fn calls(&self) -> Vec<(f64, v1::ExecSyncRequest)> {
        self.calls.lock().clone()
    }
}

#[async_trait]
impl RuntimeService for FakeRuntime {
    async fn exec_sync(&self, request: v1::ExecSyncRequest) -> CriResult<v1::ExecSyncResponse> {
        let at = (self.began.elapsed().as_secs_f64() * 100.0).round() / 100.0;
        self.calls.lock().push((at, request.clone()));
        let (takes, answer) = self.script.lock()(&request);
        sleep(takes).await;
        answer
    }
}
