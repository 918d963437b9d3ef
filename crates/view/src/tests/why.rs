//! The agent's explanation of a pod's state.

use std::{collections::BTreeMap, fs, sync::Arc, time::Duration};

use rubelet_api::status::ContainerState;
use rubelet_pod_plan::{
    History, PlanReason,
    history::{ContainerHistory, CrashBackoff, ReplacedPod, Termination},
    intents::RestartIntent,
    step_failure::StepFailure,
};
use rubelet_server::PodAction;

use super::fixture::{TestView, at, condition, ending, entry, strategic, terminated};
use rubelet_server::explanation::{ContainerKind, ExplainedState, PodExplanation};

async fn explained(seen: &TestView) -> PodExplanation {
    serde_json::from_value(seen.act(PodAction::Why).await.unwrap()).unwrap()
}

fn failure(reason: &str) -> StepFailure {
    StepFailure {
        reason: reason.into(),
        message: "no".into(),
        at: at("2026-03-01T11:59:58Z"),
        delay: Duration::from_secs(20),
        key: "".into(),
    }
}

#[tokio::test(start_paused = true)]
async fn the_replacement_of_a_pod_of_a_manifest_is_explained() {
    let seen = TestView::new();
    let mut replaced = ending(30);
    let history = History {
        replaced: Some(ReplacedPod {
            uid: "before".into(),
            at: at("2026-03-01T11:00:00Z"),
        }),
        ..History::default()
    };
    replaced.history = Arc::new(history);
    let wanted = Arc::clone(&replaced.pod);
    seen.put(replaced).await;
    let edits = explained(&seen).await.manifest_edits.unwrap();
    assert_eq!((&*edits.mode, edits.being_replaced), ("Replace", false));
    assert_eq!(edits.replaced.unwrap().uid, "before");
    seen.desired.send_modify(|desired| {
        let pods = &mut Arc::make_mut(desired).pods;
        pods.insert(wanted.name.clone(), wanted);
    });
    let edits = explained(&seen).await.manifest_edits.unwrap();
    assert!(edits.being_replaced, "its manifest defines another one");
}

#[tokio::test(start_paused = true)]
async fn a_crashing_pod_is_explained_from_its_history() {
    let seen = TestView::new();
    let mut crashing = entry();
    let web = &mut crashing.status.containers[1];
    web.state = ContainerState::Waiting {
        reason: "CrashLoopBackOff".into(),
        message: "back-off".into(),
    };
    web.ready = false;
    web.restart_count = 3;
    web.last_state = Some(terminated("web-0", 137));
    crashing.why = vec![PlanReason::BackOff(
        "web".into(),
        at("2026-03-01T12:00:38Z"),
    )];
    let history = ContainerHistory {
        crash: Some(CrashBackoff {
            delay: Duration::from_secs(40),
            last_start: at("2026-03-01T11:59:00Z"),
            key: "".into(),
        }),
        ends: vec![Termination {
            id: "web-0".into(),
            restart_count: 3,
            started_at: Some(at("2026-03-01T11:59:00Z")),
            finished_at: at("2026-03-01T11:59:58Z"),
            exit_code: 137,
            reason: "OOMKilled".into(),
            message: "".into(),
            stopped_because: "".into(),
            log: Vec::new(),
        }],
        ..ContainerHistory::default()
    };
    crashing.history = Arc::new(History {
        containers: BTreeMap::from([("web".into(), history)]),
        ..History::default()
    });
    let line = "2026-03-01T11:59:57Z stderr F out of memory\n";
    fs::write(seen.directory.path().join("web-3.log"), line.repeat(7)).unwrap();
    seen.put(crashing.clone()).await;
    let restart = RestartIntent {
        instance: Some("web-0".into()),
        at: at("2026-03-01T11:59:59Z"),
    };
    let asked = seen.intents.update(&crashing.pod.uid, move |intents| {
        intents.restarts.insert("web".into(), restart.clone());
        let done = RestartIntent {
            instance: Some("older".into()),
            ..restart
        };
        intents.restarts.insert("side".into(), done);
    });
    asked.await.unwrap();

    let pod = explained(&seen).await;
    assert_eq!((pod.phase.as_str(), pod.ready), ("Running", false));
    assert_eq!(pod.since, Some(at("2026-03-01T11:00:05Z")));
    assert_eq!(pod.plan.len(), 1);
    let kinds: Vec<_> = pod
        .containers
        .iter()
        .map(|one| (one.name.as_str(), one.kind))
        .collect();
    assert_eq!(
        kinds,
        [
            ("setup", ContainerKind::Init),
            ("proxy", ContainerKind::Sidecar),
            ("web", ContainerKind::Regular),
            ("side", ContainerKind::Regular),
        ]
    );
    let web = &pod.containers[2];
    assert_eq!(web.next_try, Some(at("2026-03-01T12:00:38Z")));
    assert_eq!(web.restart_asked, Some(at("2026-03-01T11:59:59Z")));
    let back_off = web.back_off.as_ref().unwrap();
    assert_eq!((back_off.delay_seconds, back_off.reset_seconds), (40, 600));
    assert_eq!(web.ends[0].signal.as_deref(), Some("SIGKILL"));
    assert_eq!(web.ends[0].container_id, "containerd://web-0");
    assert_eq!(web.log, ["out of memory"; 5]);
    let side = &pod.containers[3];
    assert_eq!((side.restart_asked, side.log.len()), (None, 0));
    assert!(matches!(side.state, ExplainedState::Running { .. }));
}

#[tokio::test(start_paused = true)]
async fn log_lines_that_an_end_tells_are_not_told_twice() {
    let seen = TestView::new();
    let mut failed = entry();
    failed.status.containers[1].state = ContainerState::Terminated(terminated("web-0", 1));
    let end = Termination {
        id: "web-0".into(),
        restart_count: 0,
        started_at: None,
        finished_at: at("2026-03-01T11:59:58Z"),
        exit_code: 1,
        reason: "Error".into(),
        message: "".into(),
        stopped_because: "".into(),
        log: vec!["said".into()],
    };
    let mut history = History::default();
    history.note_termination("web", end);
    failed.history = Arc::new(history);
    fs::write(
        seen.directory.path().join("web-0.log"),
        "2026-03-01T11:59:57Z stderr F said\n",
    )
    .unwrap();
    seen.put(failed).await;
    let pod = explained(&seen).await;
    let web = &pod.containers[2];
    assert_eq!(
        (web.log.len(), &web.ends[0].log),
        (0, &vec!["said".to_owned()])
    );
}

#[tokio::test(start_paused = true)]
async fn what_the_api_server_did_not_confirm_is_reported() {
    let seen = TestView::new();
    let mut old = entry();
    seen.put(old.clone()).await;
    assert_eq!(explained(&seen).await.unconfirmed, ["secret \"login\""]);
    let pod = Arc::make_mut(&mut old.pod);
    let mut shown: serde_json::Value = serde_json::from_str(&pod.json).unwrap();
    shown["metadata"]["annotations"]["rubelet.dev/unconfirmed"] = "true".into();
    pod.json = shown.to_string().into();
    seen.put(old).await;
    assert_eq!(
        explained(&seen).await.unconfirmed,
        ["the pod itself", "secret \"login\""]
    );
}

#[tokio::test(start_paused = true)]
async fn gates_troubles_and_the_end_are_reported() {
    let seen = TestView::new();
    let mut going = ending(30);
    going.status.conditions.push(condition("lb/up", false));
    going.history = Arc::new(History {
        sandbox: Some(failure("FailedCreatePodSandBox")),
        teardown: Some(failure("FailedKillPod")),
        ..History::default()
    });
    seen.put(going.clone()).await;
    let pod = explained(&seen).await;
    let sandbox = pod.sandbox.as_ref().unwrap();
    assert_eq!(sandbox.reason, "FailedCreatePodSandBox");
    assert_eq!(sandbox.next_try, at("2026-03-01T12:00:18Z"));
    assert_eq!(pod.teardown.as_ref().unwrap().reason, "FailedKillPod");
    let end = pod.ending.as_ref().unwrap();
    assert_eq!(
        (end.since, end.grace_seconds, end.kill_at),
        (at("2026-03-01T11:59:50Z"), 30, at("2026-03-01T12:00:20Z"))
    );
    let gate = &pod.readiness_gates[0];
    assert_eq!(
        (gate.condition.as_str(), gate.status.as_deref()),
        ("lb/up", Some("False"))
    );
    let patch = serde_json::json!({ "status": { "conditions": [
        { "type": "lb/up", "status": "True" }] } });
    seen.act(PodAction::PatchStatus(strategic(&patch)))
        .await
        .unwrap();
    seen.act(PodAction::Delete { grace: Some(12) })
        .await
        .unwrap();
    let pod = explained(&seen).await;
    assert!(pod.readiness_gates[0].is_open());
    assert_eq!(pod.ending.unwrap().kill_at, at("2026-03-01T12:00:12Z"));
}

#[tokio::test(start_paused = true)]
async fn a_copy_of_volumes_that_takes_long_is_told() {
    let seen = TestView::new();
    seen.put(entry()).await;
    let explained = explained(&seen).await;
    let copies = explained.containers.iter();
    let copies: Vec<_> = copies
        .filter_map(|one| Some((one.name.as_str(), one.volume_copy?.seconds)))
        .collect();
    assert_eq!(copies, [("web", 2)]);
}
