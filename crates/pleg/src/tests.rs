//! Tests of relists and observations.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use jiff::Timestamp;
use rubelet_base::{PodName, PodUid, Seq, seq::SeqSource};
use rubelet_cri::v1;
use rubelet_node_state::{clock::Clock, metrics::NodeMetrics};
use rubelet_pod_plan::{
    ContainerPhase, ObservedContainer, ObservedPod, ObservedSandbox,
    cri_config::labels::{GRACE_PERIOD, POD_NAME, POD_NAMESPACE, POD_UID},
    observed::Exit,
};
use tokio::time::Instant;

use super::{
    fingerprint::Fingerprint,
    handle::PlegHandle,
    listing::{Difference, compare, group, runtime_pods},
    observation::Observation,
    queue::LatencyClass,
};

fn labels(uid: &str) -> BTreeMap<String, String> {
    let label = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    [
        label(POD_UID, uid),
        label(POD_NAME, "p"),
        label(POD_NAMESPACE, "x"),
    ]
    .into()
}

fn listed_sandbox(id: &str, ready: bool) -> v1::PodSandbox {
    let state = if ready {
        v1::PodSandboxState::SandboxReady
    } else {
        v1::PodSandboxState::SandboxNotready
    };
    v1::PodSandbox {
        id: id.to_owned(),
        state: state.into(),
        labels: labels("u"),
        ..Default::default()
    }
}

fn listed_container(id: &str, state: v1::ContainerState) -> v1::Container {
    v1::Container {
        id: id.to_owned(),
        state: state.into(),
        labels: labels("u"),
        ..Default::default()
    }
}

fn seen_sandbox(id: &str, ready: bool) -> ObservedSandbox {
    ObservedSandbox {
        id: id.into(),
        attempt: 0,
        ready,
        created_at: Timestamp::UNIX_EPOCH,
        host_network: false,
        ips: Vec::new(),
        definition: None,
    }
}

pub(super) fn seen_container(id: &str, phase: ContainerPhase) -> ObservedContainer {
    ObservedContainer {
        id: id.into(),
        sandbox: "s".into(),
        name: "a".into(),
        restart_count: 0,
        created_at: Timestamp::UNIX_EPOCH,
        phase,
        image: "".into(),
        image_ref: "".into(),
        hash: "".into(),
        definition: None,
        pre_stop: None,
        grace: None,
        precreated_after: None,
        user: None,
        recursive_read_only: Vec::new(),
        process: rubelet_pod_plan::ProcessState::AsReported,
        kernel_exit: None,
    }
}

fn phases() -> [(ContainerPhase, v1::ContainerState); 4] {
    let at = Timestamp::UNIX_EPOCH;
    let exit = Exit {
        code: 0,
        reason: "".into(),
        message: "".into(),
        started_at: None,
        finished_at: at,
    };
    [
        (
            ContainerPhase::Created,
            v1::ContainerState::ContainerCreated,
        ),
        (
            ContainerPhase::Running { started_at: at },
            v1::ContainerState::ContainerRunning,
        ),
        (
            ContainerPhase::Exited(exit),
            v1::ContainerState::ContainerExited,
        ),
        (
            ContainerPhase::Unknown,
            v1::ContainerState::ContainerUnknown,
        ),
    ]
}

/// Compares a list with a record; `newer`: the record is newer than the list.
fn difference(
    sandboxes: &[v1::PodSandbox],
    containers: &[v1::Container],
    pod: ObservedPod,
    newer: bool,
) -> Difference {
    let source = SeqSource::default();
    let (early, late) = (source.next(), source.next());
    let (seq, began) = if newer { (late, early) } else { (early, late) };
    let seen = Observation {
        seq,
        pod: Arc::new(pod),
        error: None,
    };
    let pods = group(sandboxes, containers);
    let nothing = Default::default();
    let mut sum = Fingerprint::default();
    sandboxes.iter().for_each(|item| sum.add_sandbox(item));
    containers.iter().for_each(|item| sum.add_container(item));
    let is_as_recorded = newer || sum == Fingerprint::of(&seen.pod);
    let difference = compare(pods.get("u").unwrap_or(&nothing), &seen, began);
    assert_eq!(is_as_recorded, difference == Difference::None);
    difference
}

#[test]
fn a_container_that_changed_state_is_a_difference() {
    for (phase, known) in phases() {
        for (_, state) in phases() {
            let pod = ObservedPod {
                sandboxes: Vec::new(),
                containers: vec![seen_container("c", phase.clone())],
            };
            let list = [listed_container("c", state)];
            let expected = if state == known {
                Difference::None
            } else {
                Difference::State
            };
            assert_eq!(
                difference(&[], &list, pod.clone(), false),
                expected,
                "{phase:?} {state:?}"
            );
            assert_eq!(difference(&[], &list, pod, true), Difference::None);
        }
    }
}

#[test]
fn a_sandbox_that_changed_state_is_a_difference() {
    for (was, is) in [(true, true), (true, false), (false, true), (false, false)] {
        let pod = ObservedPod {
            sandboxes: vec![seen_sandbox("s", was)],
            containers: Vec::new(),
        };
        let expected = if was == is {
            Difference::None
        } else {
            Difference::State
        };
        assert_eq!(
            difference(&[listed_sandbox("s", is)], &[], pod, false),
            expected
        );
    }
}

#[test]
fn added_removed_and_replaced_objects_are_a_difference_of_identifiers() {
    let state = v1::ContainerState::ContainerCreated;
    let one = || ObservedPod {
        sandboxes: vec![seen_sandbox("s", true)],
        containers: vec![seen_container("c", ContainerPhase::Created)],
    };
    let sandbox = |id: &str| listed_sandbox(id, true);
    let container = |id: &str| listed_container(id, state);
    for (name, sandboxes, containers, expected) in [
        (
            "same",
            vec![sandbox("s")],
            vec![container("c")],
            Difference::None,
        ),
        ("all went", vec![], vec![], Difference::Identifiers),
        (
            "container went",
            vec![sandbox("s")],
            vec![],
            Difference::Identifiers,
        ),
        (
            "sandbox went",
            vec![],
            vec![container("c")],
            Difference::Identifiers,
        ),
        (
            "exchanged",
            vec![sandbox("s")],
            vec![container("d")],
            Difference::Identifiers,
        ),
        (
            "other sandbox",
            vec![sandbox("t")],
            vec![container("c")],
            Difference::Identifiers,
        ),
        (
            "one more",
            vec![sandbox("s")],
            vec![container("c"), container("d")],
            Difference::Identifiers,
        ),
    ] {
        assert_eq!(
            difference(&sandboxes, &containers, one(), false),
            expected,
            "{name}"
        );
        assert_eq!(
            difference(&sandboxes, &containers, one(), true),
            Difference::None,
            "{name}"
        );
    }
}

#[test]
fn objects_without_a_uid_label_belong_to_no_pod() {
    let mut foreign = listed_sandbox("s", true);
    foreign.labels.clear();
    let mut container = listed_container("c", v1::ContainerState::ContainerRunning);
    container.labels.remove(POD_UID);
    assert!(group(&[foreign], &[container]).is_empty());
}

#[test]
fn the_grace_of_a_pod_is_the_longest_of_its_containers() {
    let with_grace = |id: &str, grace: &str| {
        let mut container = listed_container(id, v1::ContainerState::ContainerRunning);
        container
            .annotations
            .insert(GRACE_PERIOD.to_owned(), grace.to_owned());
        container
    };
    for (graces, expected) in [
        (vec![], None),
        (vec!["7"], Some(7)),
        (vec!["7", "30", "9"], Some(30)),
        (vec!["broken", "4"], Some(4)),
    ] {
        let containers: Vec<_> = graces
            .iter()
            .enumerate()
            .map(|(index, grace)| with_grace(&index.to_string(), grace))
            .collect();
        let sandboxes = [listed_sandbox("s", true)];
        let pods = runtime_pods(&group(&sandboxes, &containers));
        assert_eq!(pods.len(), 1);
        assert_eq!(
            pods[0].grace,
            expected.map(Duration::from_secs),
            "{graces:?}"
        );
        assert_eq!(pods[0].name.to_string(), "x/p");
    }
}

#[test]
fn an_observation_is_as_fresh_as_its_start() {
    let handle = PlegHandle::new(Duration::from_secs(1), Clock::system(), NodeMetrics::new());
    let uid = PodUid::from("u");
    let first = handle.observe(&uid, &PodName::new("x", "p")).borrow().seq;
    assert_eq!(first, Seq::ZERO, "nothing was looked at yet");
    let step = handle.now();
    assert!(handle.now() > step);
    handle.mark(&uid);
    assert!(handle.track(&uid).pending().is_dirty(step));
    // Marks of one pod coalesce.
    for _ in 0..1000 {
        handle.mark(&uid);
    }
    let next = || handle.shared.queue.lock().get(Instant::now());
    assert_eq!(next(), Some((uid, LatencyClass::Fast)));
    assert_eq!(next(), None);
}
