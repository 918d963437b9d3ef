//! Tests of mirror pods.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;
use rubelet_api::{
    pod::{Pod, PodSource},
    status::Phase,
};
use rubelet_base::{PodName, PodUid};
use rubelet_node_state::{
    board::Board,
    pod_board::{PodBoard, PodEntry},
};
use rubelet_sources::desired::Desired;
use serde_json::{Value, json};
use tokio::{
    sync::watch,
    time::{Instant, sleep},
};

use super::{
    body::body,
    decide::{MirrorAction, decide},
    send::MirrorApi,
    task::{MirrorSources, MirrorTask, OwnerNode},
};
use crate::{
    call_error::{CallError, CallErrorKind},
    source::{ApiPod, ApiPods},
    test_objects::{copy, deletion, entry, from_file, mirror_of, plain, status},
};

fn desired(pods: &[&Arc<Pod>], ready: bool) -> Desired {
    let waiting = (!ready).then_some(PodSource::File);
    Desired {
        pods: pods
            .iter()
            .map(|pod| (pod.name.clone(), Arc::clone(pod)))
            .collect(),
        ready: BTreeSet::new(),
        waiting_for: waiting.into_iter().collect(),
    }
}

fn steps(desired: &Desired, board: &[PodEntry], copies: &[ApiPod]) -> Vec<String> {
    let board: Vec<_> = board.iter().cloned().map(Arc::new).collect();
    let copies: Vec<_> = copies.iter().cloned().map(Arc::new).collect();
    let show = |step: MirrorAction| match step {
        MirrorAction::Create(pod) => format!("create {}", pod.name.name),
        MirrorAction::Delete(copy, why) => {
            format!("delete {} {}: {why:?}", copy.name.name, copy.uid)
        }
        MirrorAction::Blocked(pod, other) => format!("{} blocked by {}", pod.name.name, other.uid),
    };
    let steps = decide(desired, &board, &copies).into_values();
    steps.map(show).collect()
}

#[test]
fn each_static_pod_has_a_mirror_pod_that_shows_it() {
    let (web, edited) = (from_file("web", "x"), from_file("web", "z"));
    let wanted = desired(&[&web], true);
    let running = json!({"phase": "Running"});
    let mirror = mirror_of(&web, "m", "1", &running);
    let said = |phase| [entry(&web, status(phase, Vec::new()))];
    let runs = said(Phase::Running);
    assert_eq!(
        steps(&wanted, &[], &[]),
        ["create web-n"],
        "even before it runs"
    );
    assert_eq!(
        steps(&wanted, &runs, std::slice::from_ref(&mirror)),
        [""; 0]
    );

    let with = |change: fn(&mut ApiPod)| {
        let mut mirror = mirror.clone();
        change(&mut mirror);
        steps(&wanted, &runs, &[mirror])
    };
    assert_eq!(
        with(|one| one.deletion = deletion()),
        ["delete web-n m: Deleted"]
    );
    assert_eq!(
        with(|one| one.mirror = Some("u".into())),
        ["delete web-n m: Differs"]
    );
    assert_eq!(
        with(|one| one.phase = Some(Phase::Failed)),
        ["delete web-n m: RunsAgain"]
    );
    let ended = ApiPod {
        phase: Some(Phase::Failed),
        ..mirror.clone()
    };
    assert_eq!(
        steps(&wanted, &said(Phase::Failed), std::slice::from_ref(&ended)),
        [""; 0]
    );
    assert_eq!(steps(&wanted, &[], &[ended]), [""; 0], "nobody knows yet");
    let wanted = desired(&[&edited], true);
    assert_eq!(
        steps(&wanted, &runs, &[mirror]),
        ["delete web-n m: Differs"]
    );
}

#[test]
fn the_mirror_pod_of_another_kubelet_stays_as_long_as_it_shows_what_runs() {
    // The UID is the hash by which that kubelet knew the manifest.
    let mut web = Pod::clone(&from_file("web", "x"));
    web.uid = "0123456789abcdef".into();
    let web = Arc::new(web);
    let mut body = body(&web, "n", "node-uid");
    body["metadata"]["uid"] = "m".into();
    // The API server's defaults and those of its admission.
    body["spec"]["priority"] = 0.into();
    body["spec"]["schedulerName"] = "default-scheduler".into();
    let shown = rubelet_api::parse::api_pod(body, "n").unwrap();
    let mirror = ApiPod {
        mirror: Some(web.uid.as_str().into()),
        config_hash: Some(web.uid.as_str().into()),
        shows: Some(Arc::new(shown.pod)),
        ..mirror_of(&web, "m", "1", &json!({"phase": "Running"}))
    };
    let mirrors = std::slice::from_ref(&mirror);
    let runs = [entry(&web, status(Phase::Running, Vec::new()))];
    assert_eq!(steps(&desired(&[&web], true), &runs, mirrors), [""; 0]);

    let differs = ["delete web-n m: Differs"];
    let mut edited = Pod::clone(&from_file("web", "z"));
    edited.uid = web.uid.clone();
    let edited = desired(&[&Arc::new(edited)], true);
    assert_eq!(steps(&edited, &runs, mirrors), differs);
    let other = from_file("web", "x");
    let another = desired(&[&other], true);
    assert_eq!(steps(&another, &runs, mirrors), [""; 0], "the old one runs");
    let replaced = [entry(&other, status(Phase::Pending, Vec::new()))];
    assert_eq!(steps(&another, &replaced, mirrors), differs, "another UID");
    let unknown = [ApiPod {
        shows: None,
        ..mirror
    }];
    assert_eq!(steps(&desired(&[&web], true), &runs, &unknown), differs);
}

#[test]
fn the_mirror_pod_of_a_pod_that_is_replaced_stays_until_that_has_ended() {
    let old = from_file("web", "x");
    let mut new = Pod::clone(&from_file("web", "z"));
    new.uid = "another".into();
    let new = Arc::new(new);
    let mirror = mirror_of(&old, "m", "1", &json!({"phase": "Running"}));
    let mirrors = std::slice::from_ref(&mirror);
    let wanted = desired(&[&new], true);
    let runs = entry(&old, status(Phase::Running, Vec::new()));
    let ends = PodEntry {
        deletion: Some((jiff::Timestamp::UNIX_EPOCH, Duration::from_secs(30))),
        ..runs.clone()
    };
    let starts = entry(&new, status(Phase::Pending, Vec::new()));
    for (what, board) in [
        ("not ended yet", vec![runs]),
        ("ending", vec![ends.clone()]),
        ("both are shown", vec![ends.clone(), starts.clone()]),
        ("the next one has not begun", vec![]),
    ] {
        assert_eq!(steps(&wanted, &board, mirrors), [""; 0], "{what}");
    }
    let done = ApiPod {
        phase: Some(Phase::Succeeded),
        ..mirror.clone()
    };
    let both = [ends.clone(), starts.clone()];
    assert_eq!(
        steps(&wanted, &both, &[done]),
        [""; 0],
        "it shows the old one"
    );
    assert_eq!(
        steps(&wanted, &[starts], mirrors),
        ["delete web-n m: Differs"]
    );
    // A user deletes it meanwhile: one is created again for the new one.
    assert_eq!(steps(&wanted, std::slice::from_ref(&ends), &[]), [""; 0]);
    let deleted = ApiPod {
        deletion: deletion(),
        ..mirror
    };
    assert_eq!(
        steps(&wanted, &[ends], &[deleted]),
        ["delete web-n m: Deleted"]
    );
}

#[test]
fn a_mirror_pod_outlives_its_static_pod_only_until_that_has_ended() {
    let web = from_file("web", "x");
    let mirror = [mirror_of(&web, "m", "1", &json!({"phase": "Running"}))];
    let none = desired(&[], true);
    let runs = [entry(&web, status(Phase::Running, Vec::new()))];
    assert_eq!(steps(&none, &runs, &mirror), [""; 0], "it still ends");
    assert_eq!(steps(&none, &[], &mirror), ["delete web-n m: Orphaned"]);
    let unread = desired(&[], false);
    assert_eq!(
        steps(&unread, &[], &mirror),
        [""; 0],
        "its manifest may still be read"
    );
}

#[test]
fn pods_of_the_api_server_need_no_mirror_and_stand_in_the_way_of_one() {
    let (web, api) = (from_file("web", "x"), plain("web-n", "Always"));
    let running = json!({"phase": "Running"});
    let runs = [entry(&api, status(Phase::Running, Vec::new()))];
    let theirs = [copy(&api, "1", &running)];
    assert_eq!(steps(&desired(&[], true), &runs, &theirs), [""; 0]);
    assert_eq!(
        steps(&desired(&[&web], true), &runs, &theirs),
        ["web-n blocked by uid-web-n"]
    );
}

#[test]
fn a_mirror_pod_is_the_static_pod_owned_by_its_node() {
    let web = from_file("web", "x");
    let body = body(&web, "n", "node-uid");
    let metadata = &body["metadata"];
    assert_eq!(metadata["name"], "web-n");
    assert_eq!(metadata["namespace"], "ns");
    for field in ["uid", "creationTimestamp", "resourceVersion"] {
        assert_eq!(
            metadata.get(field),
            None,
            "{field} is the API server's to give"
        );
    }
    let annotations = metadata["annotations"].as_object().unwrap();
    let hash = &annotations["kubernetes.io/config.hash"];
    assert!(hash.is_string());
    assert_eq!(&annotations["kubernetes.io/config.mirror"], hash);
    for kept in ["hash", "source", "seen"] {
        assert!(annotations[&format!("kubernetes.io/config.{kept}")].is_string());
    }
    assert_eq!(
        metadata["ownerReferences"],
        json!([{"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "node-uid", "controller": true}])
    );
    assert_eq!(body["spec"]["containers"][0]["image"], "x");
    assert_eq!(body["spec"]["nodeName"], "n");
    assert_eq!(body.get("status"), None);
}

/// An API server with mirror pods.
#[derive(Clone)]
struct Server {
    inner: Arc<Mutex<ServerState>>,
    api: Arc<ApiPods>,
}

#[derive(Default)]
struct ServerState {
    pods: BTreeMap<PodName, PodUid>,
    number: u32,
    refusals: VecDeque<CallErrorKind>,
    calls: Vec<String>,
}

impl Server {
    fn calls(&self) -> Vec<String> {
        std::mem::take(&mut self.inner.lock().calls)
    }

    fn refuse(&self, kind: CallErrorKind) {
        self.inner.lock().refusals.push_back(kind);
    }

    fn answer(&self, call: String) -> Result<(), CallError> {
        let mut inner = self.inner.lock();
        inner.calls.push(call);
        match inner.refusals.pop_front() {
            None => Ok(()),
            Some(kind) => {
                let text = format!("{kind:?}");
                Err(CallError { kind, text })
            }
        }
    }
}

impl MirrorApi for Server {
    async fn create(&self, _: &str, body: Value) -> Result<PodUid, CallError> {
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let metadata = &body["metadata"];
        self.answer(format!("create {}", text(&metadata["name"])))?;
        let name = PodName::new(&text(&metadata["namespace"]), &text(&metadata["name"]));
        let mut inner = self.inner.lock();
        inner.number += 1;
        let uid = PodUid::from(format!("m{}", inner.number));
        inner.pods.insert(name.clone(), uid.clone());
        let pod = plain("any", "Always");
        let annotation = |kind: &str| {
            let key = format!("kubernetes.io/config.{kind}");
            Some(text(&metadata["annotations"][&key]).into())
        };
        let copy = ApiPod {
            name,
            uid: uid.clone(),
            mirror: annotation("mirror"),
            config_hash: annotation("hash"),
            pod: None,
            ..copy(&pod, "1", &json!({"phase": "Pending"}))
        };
        let (api, key) = (Arc::clone(&self.api), uid.clone());
        tokio::spawn(async move {
            sleep(Duration::from_millis(100)).await;
            api.set(key, copy);
        });
        Ok(uid)
    }

    async fn delete(&self, pod: &PodName, uid: &PodUid) -> Result<(), CallError> {
        self.answer(format!("delete {} {uid}", pod.name))?;
        self.inner.lock().pods.remove(pod);
        let (api, uid) = (Arc::clone(&self.api), uid.clone());
        tokio::spawn(async move {
            sleep(Duration::from_millis(100)).await;
            api.remove(&uid);
        });
        Ok(())
    }
}

struct World {
    server: Server,
    board: Arc<PodBoard>,
    desired: watch::Sender<Arc<Desired>>,
    listed: watch::Sender<Arc<Desired>>,
    node_uid: watch::Sender<Option<Arc<str>>>,
}

fn start() -> World {
    let server = Server {
        inner: Arc::default(),
        api: Arc::new(Board::new()),
    };
    let board = Arc::new(Board::new());
    let (desired, manifests) = watch::channel(Arc::new(desired(&[], true)));
    let unlisted = Desired {
        waiting_for: BTreeSet::from([PodSource::Api]),
        ..Desired::default()
    };
    let (listed, receiver) = watch::channel(Arc::new(unlisted));
    let (node_uid, uid) = watch::channel(None);
    let node = OwnerNode {
        name: "n".into(),
        uid,
    };
    let wanted = MirrorSources {
        desired: manifests,
        listed: receiver,
    };
    let api = Arc::clone(&server.api);
    let task = MirrorTask::new(server.clone(), node, wanted, Arc::clone(&board), api);
    tokio::spawn(task.run());
    World {
        server,
        board,
        desired,
        listed,
        node_uid,
    }
}

impl World {
    fn want(&self, pods: &[&Arc<Pod>]) {
        self.desired.send_replace(Arc::new(desired(pods, true)));
    }

    fn ready(&self) {
        self.listed.send_replace(Arc::default());
        self.node_uid.send_replace(Some("node-uid".into()));
    }
}

async fn pass(seconds: u64) {
    sleep(Duration::from_secs(seconds)).await;
}

#[tokio::test(start_paused = true)]
async fn mirror_pods_come_with_the_node_and_go_with_the_manifest() {
    let world = start();
    let (web, edited) = (from_file("web", "x"), from_file("web", "z"));
    world.want(&[&web]);
    pass(100).await;
    world.listed.send_replace(Arc::default());
    pass(100).await;
    assert_eq!(world.server.calls(), [""; 0], "the node is not registered");
    world.node_uid.send_replace(Some("node-uid".into()));
    pass(1).await;
    assert_eq!(world.server.calls(), ["create web-n"]);
    pass(3600).await;
    assert_eq!(world.server.calls(), [""; 0]);

    // A user deletes it.
    world.server.api.remove(&"m1".into());
    pass(1).await;
    assert_eq!(world.server.calls(), ["create web-n"]);
    // The manifest is edited.
    world.want(&[&edited]);
    pass(1).await;
    assert_eq!(world.server.calls(), [""; 0], "nothing of it runs yet");
    let pending = entry(&edited, status(Phase::Pending, Vec::new()));
    world.board.set(edited.uid.clone(), pending);
    pass(1).await;
    assert_eq!(world.server.calls(), ["delete web-n m2", "create web-n"]);
    // The manifest is gone; the pod still ends.
    world.board.set(
        web.uid.clone(),
        entry(&edited, status(Phase::Running, Vec::new())),
    );
    world.want(&[]);
    pass(100).await;
    assert_eq!(world.server.calls(), [""; 0]);
    world.board.remove(&web.uid);
    pass(1).await;
    assert_eq!(world.server.calls(), ["delete web-n m3"]);
}

#[tokio::test(start_paused = true)]
async fn failures_are_tried_again_ever_more_slowly() {
    let world = start();
    let web = from_file("web", "x");
    world.want(&[&web]);
    for _ in 0..200 {
        world.server.refuse(CallErrorKind::Forbidden);
    }
    world.ready();
    let began = Instant::now();
    pass(3600).await;
    let tries = world.server.calls().len();
    assert!(
        (15..25).contains(&tries),
        "{tries} in {:?}",
        began.elapsed()
    );
    world.server.inner.lock().refusals.clear();
    pass(300).await;
    assert_eq!(world.server.calls(), ["create web-n"]);
}

#[tokio::test(start_paused = true)]
async fn one_pod_that_can_not_be_shown_does_not_hold_up_the_others() {
    let world = start();
    let (web, other) = (from_file("a", "x"), from_file("b", "x"));
    let api = plain("a-n", "Always");
    world.server.api.set(
        api.uid.clone(),
        copy(&api, "1", &json!({"phase": "Running"})),
    );
    world.want(&[&web, &other]);
    world.ready();
    pass(60).await;
    assert_eq!(world.server.calls(), ["create b-n"]);
    world.server.api.remove(&api.uid);
    pass(300).await;
    assert_eq!(world.server.calls(), ["create a-n"]);
}
