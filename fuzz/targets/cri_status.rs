//! What a runtime says of sandboxes and containers, up to the plan that is made from it.
//!
//! The first byte chooses what becomes of the pod. What follows are messages, each with its kind in
//! one byte and its length in two.

#![no_main]

use std::{cell::OnceCell, collections::BTreeSet, time::Duration};

use jiff::Timestamp;
use libfuzzer_sys::fuzz_target;
use prost::Message;
use rubelet_api::{
    manifest::decode,
    parse::{ParseContext, parse},
    pod::{Pod, PodSource},
    status::{ContainerState, ContainerStatus},
};
use rubelet_cri::v1;
use rubelet_pod_plan::{
    History, ObservedPod, OperatorIntents, PlanSettings, PodSnapshot, ProbeResults, Step, Target,
    plan,
};

#[path = "../../crates/pleg/src/convert.rs"]
mod convert;
#[path = "../../crates/pleg/src/fingerprint.rs"]
mod fingerprint;

use fingerprint::Fingerprint;

/// The most bytes of termination messages in the status of a pod, as the kubelet has it.
const MESSAGES: usize = 12 * 1024;

const MANIFEST: &str = r#"{
    "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "uid": "u"},
    "spec": {
        "initContainers": [
            {"name": "init", "image": "i"},
            {"name": "sidecar", "image": "s", "restartPolicy": "Always"}
        ],
        "containers": [{"name": "web", "image": "w"}, {"name": "db", "image": "d"}]
    }
}"#;

thread_local! {
    static POD: OnceCell<Pod> = const { OnceCell::new() };
}

fuzz_target!(|data: &[u8]| {
    let Some((choice, rest)) = data.split_first() else {
        return;
    };
    let (observed, listed) = observe(rest);
    assert_eq!(Fingerprint::of(&observed), listed, "a list says the same");
    POD.with(|pod| plans(pod.get_or_init(pod_of_manifest), &observed, *choice));
});

fn pod_of_manifest() -> Pod {
    let raw = decode(MANIFEST).pods.remove(0).expect("it is a pod");
    let context = ParseContext {
        node_name: "node",
        source: PodSource::File,
        origin: "a",
        adopted_uid: None,
        now: Timestamp::UNIX_EPOCH,
    };
    parse(raw, &context).expect("with no mistake")
}

/// What an inspection makes of the messages, and what a list that says the same adds up to.
fn observe(mut rest: &[u8]) -> (ObservedPod, Fingerprint) {
    let mut observed = ObservedPod::default();
    let mut listed = Fingerprint::default();
    while let Some(([kind, low, high], more)) = rest.split_first_chunk::<3>() {
        let length = usize::from(u16::from_le_bytes([*low, *high])).min(more.len());
        let (message, more) = more.split_at(length);
        rest = more;
        if kind % 2 == 0 {
            let Ok(answer) = v1::PodSandboxStatusResponse::decode(message) else {
                continue;
            };
            if let Some(status) = answer.status {
                listed.add_sandbox(&v1::PodSandbox {
                    id: status.id.clone(),
                    state: status.state,
                    ..v1::PodSandbox::default()
                });
                observed.sandboxes.push(convert::sandbox(status));
            }
        } else {
            let Ok(answer) = v1::ContainerStatusResponse::decode(message) else {
                continue;
            };
            assert_ne!(convert::process(&answer.info), Some(0));
            if let Some(status) = answer.status {
                listed.add_container(&v1::Container {
                    id: status.id.clone(),
                    state: status.state,
                    ..v1::Container::default()
                });
                let sandbox = observed.sandboxes.first().map(|sandbox| sandbox.id.clone());
                let sandbox = sandbox.unwrap_or_else(|| "s".into());
                let container = convert::container(status, sandbox, String::new());
                observed.containers.push(container);
            }
        }
    }
    observed
        .sandboxes
        .sort_by_key(|sandbox| std::cmp::Reverse(sandbox.created_at));
    observed
        .containers
        .sort_by_key(|container| std::cmp::Reverse(container.created_at));
    (observed, listed)
}

fn plans(pod: &Pod, observed: &ObservedPod, choice: u8) {
    let settings = PlanSettings::default();
    let history = History::default();
    let probes = ProbeResults::default();
    let intents = OperatorIntents::default();
    let grace = Duration::from_secs(u64::from(choice >> 1));
    let target = match choice & 1 {
        0 => Target::Run,
        _ => Target::Remove { grace },
    };
    let mut snapshot = PodSnapshot {
        pod,
        observed,
        history: &history,
        previous: None,
        target,
        settings: &settings,
        probes: &probes,
        intents: &intents,
        generation: 1,
    };
    let now = Timestamp::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
    let first = plan(&snapshot, now);
    check(&first.steps, observed);
    snapshot.previous = Some(&first.status);
    let second = plan(&snapshot, now);
    check(&second.steps, observed);
    let messages = second.status.all_containers().map(message_bytes);
    assert!(messages.sum::<usize>() <= 2 * MESSAGES);
}

fn message_bytes(status: &ContainerStatus) -> usize {
    let now = match &status.state {
        ContainerState::Terminated(end) => end.message.len(),
        _ => 0,
    };
    now + status
        .last_state
        .as_ref()
        .map_or(0, |end| end.message.len())
}

/// Nothing is stopped or removed but what the runtime has.
fn check(steps: &[Step], observed: &ObservedPod) {
    let containers = observed.containers.iter().map(|one| one.id.as_str());
    let containers: BTreeSet<&str> = containers.collect();
    let sandboxes = observed.sandboxes.iter().map(|one| one.id.as_str());
    let sandboxes: BTreeSet<&str> = sandboxes.collect();
    for step in steps {
        match step {
            Step::KillContainers(kills) => {
                assert!(
                    kills
                        .iter()
                        .all(|kill| containers.contains(kill.id.as_str()))
                );
            }
            Step::RemoveContainers(dead) => {
                assert!(
                    dead.iter()
                        .all(|dead| containers.contains(dead.id.as_str()))
                );
            }
            Step::StartCreated { id, .. } => assert!(containers.contains(id.as_str())),
            Step::StopSandboxes(ids) | Step::RemoveSandboxes(ids) => {
                assert!(ids.iter().all(|id| sandboxes.contains(id.as_str())));
            }
            _ => {}
        }
    }
}
