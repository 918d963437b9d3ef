//! How long a plan takes for a pod of five containers: prints the median in nanoseconds.
//!
//! Every call is timed on its own, over pods that have nothing to do, one in back-off, and one that
//! starts.

use std::{
    hint::black_box,
    io::{self, Write},
    time::Instant,
};

use jiff::Timestamp;
use rubelet_api::{
    manifest::decode,
    parse::{ParseContext, parse},
    pod::{Pod, PodSource},
};
use rubelet_pod_plan::{
    ContainerPhase, History, ObservedContainer, ObservedPod, ObservedSandbox, OperatorIntents,
    PlanSettings, PodSnapshot, ProbeResults, Target, definition, observed::Exit, plan,
};

const CALLS: usize = 30_000;

const MANIFEST: &str = "
apiVersion: v1
kind: Pod
metadata: {name: five}
spec:
  initContainers:
  - {name: prepare, image: 'app:1'}
  - name: proxy
    image: 'app:1'
    restartPolicy: Always
    startupProbe: {tcpSocket: {port: 15000}}
    readinessProbe: {httpGet: {port: 15000, path: /ready}}
  containers:
  - name: web
    image: 'app:1'
    ports: [{containerPort: 80, name: http}]
    livenessProbe: {httpGet: {port: http}}
    readinessProbe: {httpGet: {port: http}}
    lifecycle: {preStop: {sleep: {seconds: 5}}}
  - {name: worker, image: 'app:1', env: [{name: A, value: b}]}
  - {name: logs, image: 'app:1'}
";

fn main() -> io::Result<()> {
    let pod = pod();
    let now = at(3600);
    let (settings, probes, intents) = Default::default();
    let converged = observed(&pod, ContainerPhase::Running { started_at: at(10) });
    let crashed = observed(
        &pod,
        ContainerPhase::Exited(Exit {
            code: 1,
            reason: "Error".into(),
            message: "".into(),
            started_at: Some(at(10)),
            finished_at: at(3599),
        }),
    );
    let mut history = History::default();
    let worker = pod.spec.container("worker").expect("it is in the manifest");
    history.note_restart(
        worker,
        at(3500),
        at(3500),
        std::time::Duration::from_secs(300),
    );
    let fresh = History::default();
    let cases: [(&ObservedPod, &History); 3] = [
        (&converged, &fresh),
        (&crashed, &history),
        (&crashed, &fresh),
    ];
    let first = cases.map(|(observed, history)| {
        snapshot(&pod, observed, history, (&settings, &probes, &intents))
    });
    let statuses = first.each_ref().map(|snapshot| plan(snapshot, now).status);
    let mut times = Vec::with_capacity(CALLS * cases.len());
    for _ in 0..CALLS {
        for (snapshot, previous) in first.iter().zip(&statuses) {
            let snapshot = PodSnapshot {
                previous: Some(previous),
                ..*snapshot
            };
            let begin = clock();
            black_box(plan(black_box(&snapshot), now));
            times.push(begin.elapsed().as_nanos());
        }
    }
    times.sort_unstable();
    writeln!(io::stdout(), "{}", times[times.len() / 2])
}

#[expect(clippy::disallowed_methods, reason = "this program measures time")]
fn clock() -> Instant {
    Instant::now()
}

fn snapshot<'a>(
    pod: &'a Pod,
    observed: &'a ObservedPod,
    history: &'a History,
    (settings, probes, intents): (&'a PlanSettings, &'a ProbeResults, &'a OperatorIntents),
) -> PodSnapshot<'a> {
    PodSnapshot {
        pod,
        observed,
        history,
        previous: None,
        target: Target::Run,
        settings,
        probes,
        intents,
        generation: 1,
    }
}

fn pod() -> Pod {
    let mut file = decode(MANIFEST);
    let raw = file.pods.remove(0).expect("the manifest is good");
    let context = ParseContext {
        node_name: "node",
        source: PodSource::File,
        origin: "five.yaml",
        adopted_uid: None,
        now: at(0),
    };
    parse(raw, &context).expect("the manifest is good")
}

/// Everything runs, except for `worker`, which does what `phase` says.
fn observed(pod: &Pod, phase: ContainerPhase) -> ObservedPod {
    let container = |name: &str, phase: ContainerPhase| ObservedContainer {
        id: format!("{name}0123456789abcdef").as_str().into(),
        sandbox: "s".into(),
        name: name.into(),
        restart_count: 0,
        created_at: at(9),
        phase,
        image: "app:1".into(),
        image_ref: "app@sha256:1".into(),
        hash: "".into(),
        definition: pod
            .spec
            .container(name)
            .and_then(|one| one.definition.clone())
            .map(|hash| hash.0),
        pre_stop: None,
        grace: None,
        precreated_after: None,
        user: None,
        recursive_read_only: Vec::new(),
        process: rubelet_pod_plan::ProcessState::AsReported,
        kernel_exit: None,
    };
    let running = || ContainerPhase::Running { started_at: at(10) };
    let done = ContainerPhase::Exited(Exit {
        code: 0,
        reason: "Completed".into(),
        message: "".into(),
        started_at: Some(at(5)),
        finished_at: at(6),
    });
    let mut observed = ObservedPod {
        sandboxes: vec![ObservedSandbox {
            id: "s".into(),
            attempt: 0,
            ready: true,
            created_at: at(1),
            host_network: false,
            ips: vec!["10.0.0.7".into()],
            definition: definition::sandbox_definition(pod),
        }],
        containers: vec![
            container("prepare", done),
            container("proxy", running()),
            container("web", running()),
            container("worker", phase),
            container("logs", running()),
        ],
    };
    observed.sort();
    observed
}

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_700_000_000 + seconds).expect("it is in range")
}
