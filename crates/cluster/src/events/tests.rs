//! Tests of events.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use rubelet_base::PodName;
use rubelet_node_state::{
    clock::Clock,
    events::{EventType, Recorder, Subject},
};
use serde_json::{Value, json};
use tokio::time::sleep;

use super::{send::EventApi, task::EventTask, wire};
use crate::{
    call_error::{CallError, CallErrorKind},
    test_objects::at,
};

/// An API server with events.
#[derive(Clone, Default)]
struct Server(Arc<Mutex<ServerState>>);

#[derive(Default)]
struct ServerState {
    events: BTreeMap<String, Value>,
    calls: u64,
    refusals: VecDeque<CallErrorKind>,
    away: bool,
}

impl Server {
    fn begin(&self) -> Result<(), CallError> {
        let mut inner = self.0.lock();
        inner.calls += 1;
        let kind = if inner.away {
            Some(CallErrorKind::Unreachable)
        } else {
            inner.refusals.pop_front()
        };
        kind.map_or(Ok(()), refuse)
    }

    fn calls(&self) -> u64 {
        std::mem::take(&mut self.0.lock().calls)
    }

    /// The events as `REASON MESSAGE xCOUNT`, in the order of their names.
    fn shown(&self) -> Vec<String> {
        let inner = self.0.lock();
        let show = |event: &Value| {
            let text = |field: &str| event[field].as_str().unwrap().to_owned();
            format!("{} {} x{}", text("reason"), text("message"), event["count"])
        };
        inner.events.values().map(show).collect()
    }

    fn only(&self) -> Value {
        let inner = self.0.lock();
        assert_eq!(inner.events.len(), 1);
        inner.events.values().next().unwrap().clone()
    }
}

fn refuse(kind: CallErrorKind) -> Result<(), CallError> {
    let text = format!("{kind:?}");
    Err(CallError { kind, text })
}

impl EventApi for Server {
    fn create(
        &self,
        namespace: &str,
        body: Value,
    ) -> impl Future<Output = Result<(), CallError>> + Send + 'static {
        let (server, namespace) = (self.clone(), namespace.to_owned());
        async move {
            sleep(Duration::from_millis(1)).await;
            server.begin()?;
            assert_eq!(body["metadata"]["namespace"], *namespace);
            let name = body["metadata"]["name"].as_str().unwrap().to_owned();
            let key = format!("{namespace}/{name}");
            let mut inner = server.0.lock();
            if inner.events.contains_key(&key) {
                return refuse(CallErrorKind::AlreadyExists);
            }
            inner.events.insert(key, body);
            Ok(())
        }
    }

    fn patch(
        &self,
        namespace: &str,
        name: &str,
        body: Value,
    ) -> impl Future<Output = Result<(), CallError>> + Send + 'static {
        let (server, key) = (self.clone(), format!("{namespace}/{name}"));
        async move {
            sleep(Duration::from_millis(1)).await;
            server.begin()?;
            let mut inner = server.0.lock();
            let Some(event) = inner.events.get_mut(&key) else {
                return refuse(CallErrorKind::NotFound);
            };
            for (field, value) in body.as_object().unwrap() {
                event[field] = value.clone();
            }
            Ok(())
        }
    }
}

struct World {
    server: Server,
    recorder: Recorder,
    dropped: Arc<AtomicU64>,
}

fn start(qps: f32, burst: u32) -> World {
    let recorder = Recorder::new(Clock::following_tokio(at(0)));
    let (server, dropped) = (Server::default(), Arc::new(AtomicU64::new(0)));
    let task = EventTask::new(
        server.clone(),
        Arc::clone(recorder.board()),
        "n".into(),
        (qps, burst),
        Arc::clone(&dropped),
    );
    tokio::spawn(task.run());
    World {
        server,
        recorder,
        dropped,
    }
}

impl World {
    fn pod(&self, pod: &str, reason: &str, message: &str) {
        let subject = Subject::Pod {
            name: PodName::new("ns", pod),
            uid: Some("u".into()),
            field_path: "spec.containers{a}".into(),
        };
        let kind = EventType::Warning;
        self.recorder.record(subject, kind, reason, message);
    }
}

async fn pass(millis: u64) {
    sleep(Duration::from_millis(millis)).await;
}

#[tokio::test(start_paused = true)]
async fn an_event_reads_as_the_kubelets() {
    let world = start(50.0, 100);
    world.pod("web", "BackOff", "Back-off restarting");
    pass(10).await;
    let event = world.server.only();
    let name = event["metadata"]["name"].as_str().unwrap();
    assert!(name.starts_with("web."), "{name}");
    assert_eq!(
        event,
        json!({
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": "ns"},
            "involvedObject": {
                "apiVersion": "v1",
                "kind": "Pod",
                "namespace": "ns",
                "name": "web",
                "uid": "u",
                "fieldPath": "spec.containers{a}",
            },
            "reason": "BackOff",
            "message": "Back-off restarting",
            "source": {"component": "kubelet", "host": "n"},
            "firstTimestamp": "2027-01-15T08:00:00Z",
            "lastTimestamp": "2027-01-15T08:00:00Z",
            "count": 1,
            "type": "Warning",
            "reportingComponent": "kubelet",
            "reportingInstance": "n",
        })
    );
}

#[tokio::test(start_paused = true)]
async fn events_of_the_node_and_of_manifests_are_about_the_node() {
    let world = start(50.0, 100);
    let node = Subject::Node("n".into());
    world
        .recorder
        .record(node, EventType::Normal, "Starting", "Starting kubelet.");
    let manifest = Subject::Manifest("/etc/kubernetes/manifests/a.yaml".into());
    world
        .recorder
        .record(manifest, EventType::Warning, "Invalid", "line 3");
    pass(10).await;
    let inner = world.server.0.lock();
    let events: Vec<_> = inner.events.values().collect();
    assert_eq!(events.len(), 2);
    for event in events {
        assert_eq!(event["metadata"]["namespace"], "default");
        let node = json!({"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "n"});
        assert_eq!(event["involvedObject"], node);
        if event["reason"] == "Invalid" {
            assert_eq!(event["message"], "/etc/kubernetes/manifests/a.yaml: line 3");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_happens_again_is_counted_and_created_again_when_it_expired() {
    let world = start(50.0, 100);
    for _ in 0..5 {
        world.pod("web", "BackOff", "again");
        pass(10_000).await;
    }
    assert_eq!(world.server.shown(), ["BackOff again x5"]);
    assert_eq!(world.server.calls(), 5);
    let event = world.server.only();
    assert_eq!(event["firstTimestamp"], "2027-01-15T08:00:00Z");
    assert_eq!(event["lastTimestamp"], "2027-01-15T08:00:40Z");
    world.server.0.lock().events.clear();
    world.pod("web", "BackOff", "again");
    pass(10).await;
    assert_eq!(world.server.shown(), ["BackOff again x6"]);
}

#[tokio::test(start_paused = true)]
async fn from_the_tenth_message_on_one_event_stands_for_all() {
    let world = start(50.0, 100);
    for number in 1..=14 {
        world.pod("web", "Unhealthy", &format!("probe {number:02} failed"));
        pass(100).await;
    }
    let shown = world.server.shown();
    assert_eq!(shown.len(), 10);
    let combined = "Unhealthy (combined from similar events): probe 14 failed x5";
    assert!(shown.iter().any(|event| event == combined), "{shown:?}");
    // After ten quiet minutes they are told apart again.
    pass(700_000).await;
    world.pod("web", "Unhealthy", "another");
    pass(100).await;
    assert_eq!(world.server.shown().len(), 11);
}

#[tokio::test(start_paused = true)]
async fn one_object_may_not_flood_the_api_server() {
    let world = start(0.0, 1);
    for number in 0..200 {
        world.pod("noisy", &format!("Reason{number}"), "text");
    }
    world.pod("quiet", "Started", "text");
    pass(1000).await;
    assert_eq!(world.server.calls(), 26);
    pass(600_000).await;
    world.pod("noisy", "Later", "text");
    pass(1000).await;
    assert_eq!(world.server.calls(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_rate_limit_holds_for_all_together() {
    let world = start(5.0, 10);
    for number in 0..40 {
        world.pod(&format!("p{number}"), "Started", "text");
    }
    pass(100).await;
    assert_eq!(world.server.calls(), 10);
    pass(2000).await;
    assert_eq!(world.server.calls(), 10);
    pass(10_000).await;
    assert_eq!(world.server.shown().len(), 40);
}

#[tokio::test(start_paused = true)]
async fn with_the_api_server_away_the_newest_thousand_wait() {
    let world = start(0.0, 1);
    world.server.0.lock().away = true;
    for number in 0..1500 {
        world.pod(&format!("p{number:04}"), "Started", "text");
        if number % 100 == 99 {
            pass(1000).await;
        }
    }
    assert!(world.server.calls() < 20);
    world.server.0.lock().away = false;
    pass(60_000).await;
    let shown = world.server.0.lock().events.len();
    // One of them was under way all the time.
    assert_eq!(shown, 1001);
    assert_eq!(world.dropped.load(Ordering::Relaxed), 499);
}

#[tokio::test(start_paused = true)]
async fn an_event_that_is_refused_is_given_up_and_one_that_may_work_later_is_not() {
    let world = start(50.0, 100);
    for kind in [
        CallErrorKind::Forbidden,
        CallErrorKind::NotFound,
        CallErrorKind::Invalid,
    ] {
        world.server.0.lock().refusals.push_back(kind);
        world.pod("gone", &format!("{kind:?}"), "text");
        pass(60_000).await;
    }
    assert_eq!((world.server.calls(), world.server.shown()), (3, vec![]));
    assert_eq!(world.dropped.load(Ordering::Relaxed), 3);
    let later = CallErrorKind::Later(Some(Duration::from_secs(5)));
    world.server.0.lock().refusals.push_back(later);
    world.pod("web", "Started", "text");
    pass(4000).await;
    assert_eq!(world.server.calls(), 1);
    pass(2000).await;
    assert_eq!(world.server.shown(), ["Started text x1"]);
}

#[test]
fn a_name_that_is_too_long_keeps_its_number() {
    let long = format!("{}.{:016x}", "a".repeat(253), 77);
    let name = wire::name(&long);
    assert_eq!(name.len(), 253);
    assert!(name.ends_with("000000000000004d"));
    assert_eq!(
        wire::name(&format!("-.{}", "b".repeat(252))),
        "b".repeat(252)
    );
    assert_eq!(wire::name("web.4d"), "web.4d");
}
