//! The status of a pod whose specification is lost: it is being removed, and its status derives
//! from the last published one.

use jiff::Timestamp;
use rubelet_api::status::{Condition, ContainerState, Phase, PodStatus};

use super::containers::terminated;
use crate::snapshot::PodSnapshot;

/// The last published status with the terminations observed since.
pub(super) fn generate(snapshot: &PodSnapshot<'_>, now: Timestamp) -> PodStatus {
    let Some(previous) = snapshot.previous else {
        return without_previous(snapshot, now);
    };
    let mut status = previous.clone();
    let lists = [
        &mut status.init_containers,
        &mut status.containers,
        &mut status.ephemeral_containers,
    ];
    let mut all_ready = true;
    for one in lists.into_iter().flatten() {
        let found = snapshot.observed.newest(&one.name);
        if let Some((found, exit)) = found.and_then(|found| Some((found, found.phase.exit()?))) {
            one.state = ContainerState::Terminated(terminated(exit, found.id.as_str()));
            one.started = false;
            one.ready = false;
            all_ready = false;
        }
    }
    if !all_ready {
        for condition in &mut status.conditions {
            let of_containers = matches!(&*condition.kind, "Ready" | "ContainersReady");
            if of_containers && condition.status.is_true() {
                condition.status = false.into();
                condition.last_transition = now;
            }
        }
    }
    status
}

fn without_previous(snapshot: &PodSnapshot<'_>, now: Timestamp) -> PodStatus {
    let condition = |kind: &str| Condition {
        kind: kind.into(),
        status: false.into(),
        reason: "".into(),
        message: "".into(),
        last_transition: now,
        observed_generation: 0,
    };
    PodStatus {
        phase: Phase::Pending,
        reason: "".into(),
        message: "".into(),
        start_time: super::first_record(snapshot.observed).map_or(now, |at| at.min(now)),
        pod_ips: super::pod_ips(snapshot),
        conditions: vec![condition("Ready"), condition("ContainersReady")],
        observed_generation: 0,
        init_containers: Vec::new(),
        containers: Vec::new(),
        ephemeral_containers: Vec::new(),
    }
}
