//! Answers and messages that tell something else than the runtime said.

use prost::{Message, bytes::BufMut};
use rubelet_cri::v1;

use crate::{
    dice::Dice,
    rpc::Shape,
    rule::{Fault, Select},
    subject::Known,
};

/// A field that no message of CRI has, for bytes that make a message large and mean nothing.
const PADDING_TAG: u32 = 1900;

/// What is said in place of `message`; `None` if the message is not what it should be, or the fault
/// changes nothing of it.
pub(crate) fn changed(
    shape: Shape,
    fault: &Fault,
    select: &Select,
    dice: &mut Dice,
    message: &[u8],
) -> Option<Vec<u8>> {
    match shape {
        // A piece has the list in the same field as the whole.
        Shape::Sandboxes | Shape::SandboxPieces => sandboxes(fault, select, dice, message),
        Shape::Containers | Shape::ContainerPieces => containers(fault, select, dice, message),
        Shape::SandboxStatus => sandbox_status(fault, message),
        Shape::ContainerStatus => container_status(message),
        Shape::Events => event(fault, message),
        Shape::Unary | Shape::Pieces => None,
    }
}

fn sandboxes(fault: &Fault, select: &Select, dice: &mut Dice, message: &[u8]) -> Option<Vec<u8>> {
    if let Fault::Huge(size) = fault {
        return Some(padded(message, *size));
    }
    let mut list = v1::ListPodSandboxResponse::decode(message).ok()?;
    list.items
        .retain(|item| !(select.takes(&Known::of_sandbox(item)) && is_left_out(fault, dice)));
    Some(list.encode_to_vec())
}

fn containers(fault: &Fault, select: &Select, dice: &mut Dice, message: &[u8]) -> Option<Vec<u8>> {
    if let Fault::Huge(size) = fault {
        return Some(padded(message, *size));
    }
    let mut list = v1::ListContainersResponse::decode(message).ok()?;
    let taken = |item: &v1::Container| select.takes(&Known::of_container(item));
    if *fault == Fault::Running {
        for item in list.containers.iter_mut().filter(|item| taken(item)) {
            if item.state() == v1::ContainerState::ContainerExited {
                item.set_state(v1::ContainerState::ContainerRunning);
            }
        }
    } else {
        list.containers
            .retain(|item| !(taken(item) && is_left_out(fault, dice)));
    }
    Some(list.encode_to_vec())
}

fn is_left_out(fault: &Fault, dice: &mut Dice) -> bool {
    match fault {
        Fault::Empty => true,
        Fault::Partial(share) => dice.happens(*share),
        _ => false,
    }
}

fn padded(message: &[u8], size: usize) -> Vec<u8> {
    let mut large = message.to_vec();
    prost::encoding::encode_key(
        PADDING_TAG,
        prost::encoding::WireType::LengthDelimited,
        &mut large,
    );
    prost::encoding::encode_varint(size as u64, &mut large);
    large.put_bytes(0, size);
    large
}

fn sandbox_status(fault: &Fault, message: &[u8]) -> Option<Vec<u8>> {
    let mut answer = v1::PodSandboxStatusResponse::decode(message).ok()?;
    match fault {
        Fault::WrongUid(uid) => set_uid(answer.status.as_mut(), uid),
        _ => answer.status = None,
    }
    Some(answer.encode_to_vec())
}

fn set_uid(status: Option<&mut v1::PodSandboxStatus>, uid: &str) {
    if let Some(metadata) = status.and_then(|status| status.metadata.as_mut()) {
        uid.clone_into(&mut metadata.uid);
    }
}

/// The container's end has not happened.
fn container_status(message: &[u8]) -> Option<Vec<u8>> {
    let mut answer = v1::ContainerStatusResponse::decode(message).ok()?;
    let status = answer.status.as_mut()?;
    if status.state() != v1::ContainerState::ContainerExited {
        return None;
    }
    status.set_state(v1::ContainerState::ContainerRunning);
    status.finished_at = 0;
    status.exit_code = 0;
    status.reason.clear();
    status.message.clear();
    Some(answer.encode_to_vec())
}

fn event(fault: &Fault, message: &[u8]) -> Option<Vec<u8>> {
    let mut event = v1::ContainerEventResponse::decode(message).ok()?;
    match fault {
        Fault::NilSandbox => event.pod_sandbox_status = None,
        Fault::WrongUid(uid) => set_uid(event.pod_sandbox_status.as_mut(), uid),
        _ => return None,
    }
    Some(event.encode_to_vec())
}

/// An earlier event of the container `newer` is about, stamped as if it had come after it: what a
/// runtime sends that read a status, was held up, and stamped it then.
pub(crate) fn stale<'a>(
    newer: &[u8],
    earlier: impl DoubleEndedIterator<Item = &'a [u8]>,
) -> Option<Vec<u8>> {
    let newer = v1::ContainerEventResponse::decode(newer).ok()?;
    earlier
        .rev()
        .filter_map(|event| v1::ContainerEventResponse::decode(event).ok())
        .find(|event| {
            event.container_id == newer.container_id
                && event.container_event_type != newer.container_event_type
        })
        .map(|event| v1::ContainerEventResponse {
            created_at: newer.created_at + 1_000_000,
            ..event
        })
        .map(|event| event.encode_to_vec())
}

#[cfg(test)]
mod tests {
    use rubelet_cri::v1::ContainerEventType::{ContainerStartedEvent, ContainerStoppedEvent};

    use super::*;
    use crate::rule::Rule;

    fn change(shape: Shape, rule: &str, message: &[u8]) -> Vec<u8> {
        let rule: Rule = rule.parse().unwrap();
        changed(shape, &rule.fault, &rule.select, &mut Dice::new(1), message).unwrap()
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
    fn lists_lose_items_or_tell_lies_about_them() {
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
    fn a_huge_list_means_the_same() {
        let all = containers(&["a"]);
        let large = change(Shape::Containers, "ListContainers huge", &all);
        assert!(large.len() > 16 * 1024 * 1024);
        assert_eq!(listed(&large), [("a".to_owned(), false)]);
    }

    #[test]
    fn a_container_that_has_ended_is_said_to_run() {
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
    fn events_lose_their_sandbox_or_name_another_pod() {
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
    fn a_stale_event_is_an_earlier_one_of_the_container_with_a_later_stamp() {
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
}
