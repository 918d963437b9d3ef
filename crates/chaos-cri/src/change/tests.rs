//! Tests of `change`.

use rubelet_cri::v1::ContainerEventType::{ContainerStartedEvent, ContainerStoppedEvent};

use super::*;
use crate::rule::Rule;

fn change(shape: Shape, rule: &str, message: &[u8]) -> Vec<u8> {
    let rule: Rule = rule.parse().unwrap();
    apply_fault(shape, &rule.fault, &rule.select, &mut Dice::new(1), message).unwrap()
}

fn containers(ids: &[&str]) -> Vec<u8> {
    let container = |id: &&str| v1::Container {
        id: (*id).to_owned(),
        state: v1::ContainerState::ContainerExited.into(),
        ..Default::default()
    };
    v1::ListContainersResponse {
        containers: ids.iter().map(container).collect(),
    }
    .encode_to_vec()
}

fn listed(message: &[u8]) -> Vec<(String, bool)> {
    v1::ListContainersResponse::decode(message)
        .unwrap()
        .containers
        .into_iter()
        .map(|item| {
            let runs = item.state() == v1::ContainerState::ContainerRunning;
            (item.id, runs)
        })
        .collect()
}

#[test]
fn lists_lose_items_or_report_wrong_states() {
    let all = containers(&["a1", "a2", "b1"]);
    let own = |items: &[(&str, bool)]| -> Vec<(String, bool)> {
        items
            .iter()
            .map(|(id, runs)| ((*id).to_owned(), *runs))
            .collect()
    };
    for (rule, left) in [
        ("ListContainers empty", own(&[])),
        ("ListContainers id=a empty", own(&[("b1", false)])),
        ("ListContainers partial=100%", own(&[])),
        (
            "ListContainers partial=0",
            own(&[("a1", false), ("a2", false), ("b1", false)]),
        ),
        (
            "ListContainers id=b running",
            own(&[("a1", false), ("a2", false), ("b1", true)]),
        ),
    ] {
        assert_eq!(
            listed(&change(Shape::Containers, rule, &all)),
            left,
            "{rule}"
        );
    }
}

#[test]
fn a_padded_list_decodes_to_the_same() {
    let all = containers(&["a"]);
    let large = change(Shape::Containers, "ListContainers huge", &all);
    assert!(large.len() > 16 * 1024 * 1024);
    assert_eq!(listed(&large), [("a".to_owned(), false)]);
}

#[test]
fn an_exited_container_is_reported_as_running() {
    let ended = v1::ContainerStatusResponse {
        status: Some(v1::ContainerStatus {
            id: "a".into(),
            state: v1::ContainerState::ContainerExited.into(),
            exit_code: 3,
            finished_at: 5,
            started_at: 4,
            ..Default::default()
        }),
        ..Default::default()
    };
    let message = change(
        Shape::ContainerStatus,
        "ContainerStatus running",
        &ended.encode_to_vec(),
    );
    let status = v1::ContainerStatusResponse::decode(&*message)
        .unwrap()
        .status
        .unwrap();
    assert_eq!(status.state(), v1::ContainerState::ContainerRunning);
    assert_eq!(
        (status.started_at, status.finished_at, status.exit_code),
        (4, 0, 0)
    );
}

#[test]
fn events_lose_their_sandbox_or_get_another_pod() {
    let event = v1::ContainerEventResponse {
        container_id: "a".into(),
        pod_sandbox_status: Some(v1::PodSandboxStatus {
            metadata: Some(v1::PodSandboxMetadata::default()),
            ..Default::default()
        }),
        ..Default::default()
    };
    let said = |rule| {
        let message = change(Shape::Events, rule, &event.encode_to_vec());
        v1::ContainerEventResponse::decode(&*message)
            .unwrap()
            .pod_sandbox_status
    };
    assert_eq!(said("GetContainerEvents nil-sandbox"), None);
    let wrong = said("GetContainerEvents wrong-uid=u7").unwrap();
    assert_eq!(wrong.metadata.unwrap().uid, "u7");
}

#[test]
fn a_stale_event_is_an_earlier_one_with_a_later_timestamp() {
    let event = |id: &str, kind: v1::ContainerEventType, at| {
        v1::ContainerEventResponse {
            container_id: id.to_owned(),
            container_event_type: kind.into(),
            created_at: at,
            ..Default::default()
        }
        .encode_to_vec()
    };
    let earlier = [
        event("a", ContainerStartedEvent, 1),
        event("b", ContainerStartedEvent, 2),
    ];
    let newer = event("a", ContainerStoppedEvent, 3);
    let said = stale(&newer, earlier.iter().map(Vec::as_slice)).unwrap();
    assert_eq!(said, event("a", ContainerStartedEvent, 1_000_003));
    let other = event("c", ContainerStoppedEvent, 3);
    assert_eq!(stale(&other, earlier.iter().map(Vec::as_slice)), None);
}
