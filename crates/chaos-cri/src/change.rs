//! Faults that change responses and messages of the runtime.

use prost::{Message, bytes::BufMut};
use rubelet_cri::v1;

use crate::{
    dice::Dice,
    rpc::Shape,
    rule::{Fault, Select},
    subject::KnownPods,
};

/// Tag of a field that no CRI message has, for bytes that only make a message larger.
const PADDING_TAG: u32 = 1900;

/// The message to send instead of `message`; `None` if it can't be decoded, or the fault does not
/// change it.
pub(crate) fn apply_fault(
    shape: Shape,
    fault: &Fault,
    select: &Select,
    dice: &mut Dice,
    message: &[u8],
) -> Option<Vec<u8>> {
    match shape {
        // A chunk has the list in the same field as a whole list.
        Shape::Sandboxes | Shape::SandboxChunks => sandboxes(fault, select, dice, message),
        Shape::Containers | Shape::ContainerChunks => containers(fault, select, dice, message),
        Shape::SandboxStatus => sandbox_status(fault, message),
        Shape::ContainerStatus => container_status(message),
        Shape::Events => event(fault, message),
        Shape::Unary | Shape::Chunks => None,
    }
}

fn sandboxes(fault: &Fault, select: &Select, dice: &mut Dice, message: &[u8]) -> Option<Vec<u8>> {
    if let Fault::Huge(size) = fault {
        return Some(padded(message, *size));
    }
    let mut list = v1::ListPodSandboxResponse::decode(message).ok()?;
    list.items
        .retain(|item| !(select.matches(&KnownPods::of_sandbox(item)) && is_left_out(fault, dice)));
    Some(list.encode_to_vec())
}

fn containers(fault: &Fault, select: &Select, dice: &mut Dice, message: &[u8]) -> Option<Vec<u8>> {
    if let Fault::Huge(size) = fault {
        return Some(padded(message, *size));
    }
    let mut list = v1::ListContainersResponse::decode(message).ok()?;
    let taken = |item: &v1::Container| select.matches(&KnownPods::of_container(item));
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

/// Reports an exited container as running.
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

/// An earlier event of the container of `newer`, with a later timestamp: what a runtime sends that
/// was delayed between reading a status and creating the event.
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
mod tests;
