//! The status of a pod, from the observed and the published state (kubelet:
//! `generateAPIPodStatus`).

mod conditions;
mod containers;
mod ended;
mod messages;
mod phase;
mod unknown;

use jiff::Timestamp;
use rubelet_api::{
    pod::PodSource,
    status::{Phase, PodStatus},
};

use crate::{
    actions::Actions,
    observed::ObservedPod,
    pod_ips::in_family_order,
    snapshot::{PodSnapshot, Target},
};

pub use ended::end_containers;

/// The status to publish for a decision.
#[must_use]
pub fn generate(snapshot: &PodSnapshot<'_>, actions: &Actions, now: Timestamp) -> PodStatus {
    let spec = &snapshot.pod.spec;
    if spec.containers.is_empty() {
        return unknown::generate(snapshot, now);
    }
    let previous = snapshot.previous;
    let mut all = containers::all(snapshot, actions, now);
    messages::limit(&mut all);
    let [mut init_containers, mut containers, ephemeral_containers] = all;
    let mut phase = phase::of(&phase::PhaseInputs {
        spec,
        init_containers: &init_containers,
        containers: &containers,
        initialized: initialized(snapshot),
        restarting_all: actions.restarting_all,
        terminating: snapshot.target != Target::Run && snapshot.pod.source == PodSource::Api,
    });
    let (mut reason, mut message) = previous
        .filter(|old| old.phase == phase)
        .map(|old| (old.reason.clone(), old.message.clone()))
        .unwrap_or_default();
    // A terminal phase is final: controllers have acted on it.
    if let Some(old) = previous.filter(|old| old.phase.is_terminal()) {
        phase = old.phase;
        reason = old.reason.clone();
        message = old.message.clone();
    } else if let Some(end) = &actions.pod_failure {
        // Its resources must not be reused while a container may run.
        if may_run(snapshot.observed) {
            phase = previous.map_or(Phase::Pending, |old| old.phase);
        } else {
            phase = Phase::Failed;
            reason = end.reason.clone();
            message = end.message.clone();
        }
    }
    if actions.never_restarts && !phase.is_terminal() && snapshot.observed.is_stopped() {
        // Some of its containers never ran, and none will be started.
        phase = Phase::Failed;
    }
    if phase.is_terminal() && snapshot.observed.is_stopped() {
        end_containers(spec, &mut init_containers, &mut containers);
    }
    let conditions = conditions::all(snapshot, actions, phase, &init_containers, &containers, now);
    PodStatus {
        phase,
        reason,
        message,
        start_time: previous.map_or_else(
            || first_record(snapshot.observed).map_or(now, |at| at.min(now)),
            |old| old.start_time,
        ),
        pod_ips: pod_ips(snapshot),
        conditions,
        observed_generation: snapshot.generation,
        init_containers,
        containers,
        ephemeral_containers,
    }
}

fn may_run(observed: &ObservedPod) -> bool {
    let mut containers = observed.containers.iter();
    containers.any(|container| container.phase.may_run())
}

/// True if a regular container was created in the current sandbox.
fn initialized(snapshot: &PodSnapshot<'_>) -> bool {
    let Some(sandbox) = snapshot.observed.ready_sandbox() else {
        return false;
    };
    let mut regular = snapshot.pod.spec.containers.iter();
    regular.any(|one| {
        snapshot
            .observed
            .newest_in(&sandbox.id, &one.name)
            .is_some()
    })
}

/// The earliest creation time in the runtime: for a pod that another kubelet started, or whose
/// record was lost.
fn first_record(observed: &ObservedPod) -> Option<Timestamp> {
    let sandboxes = observed.sandboxes.iter().map(|found| found.created_at);
    let containers = observed.containers.iter().map(|found| found.created_at);
    sandboxes.chain(containers).min()
}

/// Addresses of the newest sandbox, in the node's family order; the published ones if no sandbox
/// has any; the node's for pods on the host network.
fn pod_ips(snapshot: &PodSnapshot<'_>) -> Vec<Box<str>> {
    if snapshot.pod.spec.host_network {
        return snapshot.settings.node_ips.clone();
    }
    let observed = snapshot.observed;
    match observed.sandboxes.first() {
        Some(sandbox) if !sandbox.ips.is_empty() => {
            in_family_order(&sandbox.ips, &snapshot.settings.node_ips)
        }
        Some(sandbox) if sandbox.ready => Vec::new(),
        _ => snapshot
            .previous
            .map(|old| old.pod_ips.clone())
            .unwrap_or_default(),
    }
}
