//! What to tell the API server about one pod.

use std::sync::Arc;

use rubelet_api::status::Phase;
use rubelet_node_state::pod_board::PodEntry;
use serde_json::{Value, json};

use super::super::{
    StatusContext,
    decide::{StatusAction, decide},
    sync_state::PodSyncState,
};
use crate::{
    source::ApiPod,
    test_objects::{
        at, container, copy, deletion, ended, entry, from_file, mirror_of, plain, running, status,
    },
};

fn context(runtime: &str) -> StatusContext {
    StatusContext {
        host_ips: Arc::from([]),
        runtime: runtime.into(),
    }
}

fn step(entry: &PodEntry, copy: &ApiPod) -> String {
    show(decide(
        entry,
        1,
        copy,
        &PodSyncState::default(),
        &context("r"),
        at(9),
    ))
}

fn show(step: StatusAction) -> String {
    match step {
        StatusAction::Nothing => "nothing".to_owned(),
        StatusAction::Delete => "delete".to_owned(),
        StatusAction::Patch { body, .. } => {
            let phase = body["status"]["phase"].as_str().unwrap_or("-");
            format!("patch {phase}")
        }
    }
}

/// The status that the API server has after a step.
fn after(entry: &PodEntry, copy: &ApiPod) -> Value {
    let step = decide(
        entry,
        1,
        copy,
        &PodSyncState::default(),
        &context("r"),
        at(9),
    );
    let StatusAction::Patch { status, .. } = step else {
        panic!("{step:?}")
    };
    serde_json::from_str(&status).unwrap()
}

#[test]
fn a_pod_goes_when_it_ended_here_and_all_who_watch_were_told() {
    let web = plain("web", "Always");
    let pending = json!({"phase": "Pending"});
    let mut said = entry(&web, status(Phase::Running, vec![running("a")]));
    let mut theirs = copy(&web, "1", &pending);
    assert_eq!(step(&said, &theirs), "patch Running");
    let shown = after(&said, &theirs);
    theirs = copy(&web, "2", &shown);
    assert_eq!(step(&said, &theirs), "nothing");

    // It ends: the phase waits for the last container.
    theirs.deletion = deletion();
    assert_eq!(step(&said, &theirs), "nothing");
    said.status = status(Phase::Failed, vec![running("a")]);
    assert_eq!(step(&said, &theirs), "patch -");
    said.status = status(Phase::Failed, vec![container("a", ended(137))]);
    assert_eq!(step(&said, &theirs), "patch Failed");
    let shown = after(&said, &theirs);
    theirs = ApiPod {
        deletion: deletion(),
        ..copy(&web, "3", &shown)
    };
    assert_eq!(step(&said, &theirs), "nothing", "something of it is left");
    said.finished = true;
    assert_eq!(step(&said, &theirs), "delete");
    theirs.deletion = None;
    assert_eq!(step(&said, &theirs), "nothing", "nobody wants it deleted");
}

#[test]
fn a_pod_that_never_ran_is_reported_to_have_failed_before_it_goes() {
    let web = plain("web", "Always");
    let waiting = rubelet_api::status::ContainerState::Waiting {
        reason: "ContainerCreating".into(),
        message: "".into(),
    };
    let mut said = entry(&web, status(Phase::Pending, vec![container("a", waiting)]));
    said.finished = true;
    let theirs = ApiPod {
        deletion: deletion(),
        ..copy(&web, "1", &json!({"phase": "Pending"}))
    };
    assert_eq!(step(&said, &theirs), "patch Failed");
    let shown = after(&said, &theirs);
    let ended = &shown["containerStatuses"][0]["state"]["terminated"];
    assert_eq!(ended["exitCode"], 137);
    assert_eq!(ended["reason"], "ContainerStatusUnknown");
    let theirs = ApiPod {
        deletion: deletion(),
        ..copy(&web, "2", &shown)
    };
    assert_eq!(step(&said, &theirs), "delete");
}

#[test]
fn a_mirror_pod_is_never_deleted_with_its_status() {
    let file = from_file("web", "x");
    let mut said = entry(&file, status(Phase::Failed, vec![container("a", ended(1))]));
    said.finished = true;
    let mut mirror = mirror_of(&file, "m1", "1", &json!({"phase": "Running"}));
    mirror.deletion = deletion();
    let shown = after(&said, &mirror);
    let mut mirror = mirror_of(&file, "m1", "2", &shown);
    mirror.deletion = deletion();
    assert_eq!(step(&said, &mirror), "nothing");
}

#[test]
fn identifiers_of_containers_wait_for_the_name_of_the_runtime() {
    let web = plain("web", "Always");
    let said = entry(&web, status(Phase::Running, vec![running("a")]));
    let theirs = copy(&web, "1", &json!({"phase": "Pending"}));
    let none = decide(
        &said,
        1,
        &theirs,
        &PodSyncState::default(),
        &context(""),
        at(9),
    );
    assert_eq!(none, StatusAction::Nothing);
    let shown = after(&said, &theirs);
    assert_eq!(shown["containerStatuses"][0]["containerID"], "r://c1");
}

#[test]
fn what_was_acknowledged_counts_until_the_watch_has_caught_up() {
    let web = plain("web", "Always");
    let old = Arc::new(copy(&web, "9", &json!({"phase": "Pending"})));
    let said = entry(&web, status(Phase::Running, vec![running("a")]));
    let StatusAction::Patch { status: sent, .. } = decide(
        &said,
        1,
        &old,
        &PodSyncState::default(),
        &context("r"),
        at(9),
    ) else {
        panic!("it is new")
    };
    let mut known = PodSyncState::default();
    known.patched(&old, "10", sent, 1);
    let next = |copy: &ApiPod, said: &PodEntry, version| {
        show(decide(said, version, copy, &known, &context("r"), at(9)))
    };
    assert_eq!(next(&old, &said, 1), "nothing");
    assert_eq!(
        next(&old, &said, 2),
        "nothing",
        "the entry changed, its status did not"
    );
    // Back before the watch has reported it: the old copy must not be taken for the truth.
    let back = entry(&web, status(Phase::Pending, Vec::new()));
    assert_eq!(next(&old, &back, 3), "patch -");
    // Another client wrote after us, and the watch reported that: 9 < 10 < 11.
    let newer = copy(&web, "11", &json!({"phase": "Pending"}));
    assert_eq!(next(&newer, &said, 1), "patch Running");
    let elsewhere = ApiPod {
        uid: "another".into(),
        ..copy(&web, "5", &json!({"phase": "Pending"}))
    };
    assert_eq!(next(&elsewhere, &said, 1), "patch Running");
}
