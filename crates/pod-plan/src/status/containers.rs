//! `containerStatuses` and `initContainerStatuses`.

use jiff::Timestamp;
use rubelet_api::{
    container::Container,
    pod::RestartPolicy,
    status::{ContainerState, ContainerStatus, Terminated},
};

use crate::{
    actions::{Actions, should_restart},
    definition, image,
    observed::{ContainerPhase, Exit, ObservedContainer},
    plan::{PodSnapshot, Target},
};
use rubelet_base::duration::format_go;

/// Reason of a container that was running and that the runtime no longer knows.
const STATUS_UNKNOWN: &str = "ContainerStatusUnknown";
/// Exit code that stands for a container that vanished.
const VANISHED_EXIT_CODE: i32 = 137;

/// Statuses of init containers in the order of the specification, and of the others by name.
pub(super) fn all(
    snapshot: &PodSnapshot<'_>,
    actions: &Actions,
    now: Timestamp,
) -> (Vec<ContainerStatus>, Vec<ContainerStatus>) {
    let spec = &snapshot.pod.spec;
    let any_regular = spec
        .containers
        .iter()
        .any(|container| snapshot.observed.newest(&container.name).is_some());
    let init = spec
        .init_containers
        .iter()
        .map(|container| one(snapshot, actions, container, true, any_regular, now))
        .collect();
    let mut regular: Vec<ContainerStatus> = spec
        .containers
        .iter()
        .map(|container| one(snapshot, actions, container, false, any_regular, now))
        .collect();
    regular.sort_by(|a, b| a.name.cmp(&b.name));
    (init, regular)
}

fn one(
    snapshot: &PodSnapshot<'_>,
    actions: &Actions,
    container: &Container,
    is_init: bool,
    any_regular: bool,
    now: Timestamp,
) -> ContainerStatus {
    let old = snapshot.previous.and_then(|status| {
        let list = if is_init {
            &status.init_containers
        } else {
            &status.containers
        };
        list.iter().find(|status| status.name == container.name)
    });
    let (newest, before) = snapshot.observed.newest_two(&container.name);
    let mut status = match newest {
        Some(found) => seen(container, found, before, old),
        None => unseen(snapshot, container, old, is_init, any_regular),
    };
    status.restart_count = status
        .restart_count
        .max(old.map_or(0, |old| old.restart_count));
    wait_for_restart(
        snapshot,
        actions,
        container,
        newest,
        is_init,
        now,
        &mut status,
    );
    let running = matches!(status.state, ContainerState::Running { .. });
    status.started = running;
    status.ready = if is_init {
        matches!(&status.state, ContainerState::Terminated(end) if end.exit_code == 0)
    } else {
        running
    };
    status
}

/// A container of which the runtime has a record.
fn seen(
    container: &Container,
    found: &ObservedContainer,
    before: Option<&ObservedContainer>,
    old: Option<&ContainerStatus>,
) -> ContainerStatus {
    let id = found.id.as_str();
    let state = match &found.phase {
        ContainerPhase::Created => waiting("", ""),
        ContainerPhase::Running { started_at } => ContainerState::Running {
            started_at: *started_at,
        },
        ContainerPhase::Exited(exit) => ContainerState::Terminated(terminated(exit, id)),
        ContainerPhase::Unknown => ContainerState::Terminated(Terminated {
            message: "The container could not be located when the pod was terminated".into(),
            ..vanished(id, started_before(old))
        }),
    };
    let last_state = before
        .and_then(|before| {
            before
                .phase
                .exit()
                .map(|exit| terminated(exit, before.id.as_str()))
        })
        .or_else(|| {
            let old = old?;
            match &old.state {
                ContainerState::Terminated(end) if *old.container_id != *id => Some(end.clone()),
                _ => old
                    .last_state
                    .clone()
                    .filter(|end| *end.container_id != *id),
            }
        });
    ContainerStatus {
        name: container.name.clone(),
        image: found.image.clone(),
        image_id: found.image_ref.clone(),
        container_id: id.into(),
        ready: false,
        started: false,
        restart_count: found.restart_count,
        state,
        last_state,
    }
}

/// A container of which the runtime has no record: never made, or lost.
fn unseen(
    snapshot: &PodSnapshot<'_>,
    container: &Container,
    old: Option<&ContainerStatus>,
    is_init: bool,
    any_regular: bool,
) -> ContainerStatus {
    let fresh = || ContainerStatus {
        name: container.name.clone(),
        image: container.image.clone(),
        image_id: "".into(),
        container_id: "".into(),
        ready: false,
        started: false,
        restart_count: 0,
        state: default_waiting(snapshot, is_init),
        last_state: None,
    };
    let Some(old) = old else {
        let mut status = fresh();
        if is_init && any_regular {
            status.state = ContainerState::Terminated(completed_unseen());
        }
        return status;
    };
    let mut status = old.clone();
    match &old.state {
        ContainerState::Waiting { .. } => status.state = default_waiting(snapshot, is_init),
        ContainerState::Terminated(_) => {}
        ContainerState::Running { .. } if is_init && any_regular => {
            status.state = ContainerState::Terminated(completed_unseen());
        }
        ContainerState::Running { started_at } => {
            let mut end = vanished(&old.container_id, Some(*started_at));
            end.message = "The container could not be located when the pod was deleted.  \
                           The container used to be Running"
                .into();
            if snapshot.target == Target::Run && may_start_again(snapshot) {
                status.last_state = Some(end);
                status.restart_count = old.restart_count.saturating_add(1);
                status.state = default_waiting(snapshot, is_init);
            } else {
                status.state = ContainerState::Terminated(end);
            }
        }
    }
    status
}

fn may_start_again(snapshot: &PodSnapshot<'_>) -> bool {
    snapshot.pod.spec.restart_policy != RestartPolicy::Never
}

/// A terminated container that is to start again is shown as waiting, with the reason of the last
/// failed try or of the crash back-off; how it ended moves to `lastState`.
fn wait_for_restart(
    snapshot: &PodSnapshot<'_>,
    actions: &Actions,
    container: &Container,
    newest: Option<&ObservedContainer>,
    is_init: bool,
    now: Timestamp,
    status: &mut ContainerStatus,
) {
    if snapshot.target != Target::Run
        || actions.deadline_exceeded
        || snapshot.previous.is_some_and(|old| old.phase.is_terminal())
    {
        return;
    }
    let exit = newest.and_then(|found| found.phase.exit());
    let restarts = match (newest, exit) {
        (None, _) => true,
        (Some(found), Some(exit)) => {
            let failed = if is_init { exit.failed() } else { true };
            let code = if is_init && exit.code == 0 && failed {
                137
            } else {
                exit.code
            };
            definition::container_changed(container, found)
                || (failed && should_restart(snapshot.pod.spec.restart_policy, code))
        }
        (Some(found), None) => matches!(found.phase, ContainerPhase::Created),
    };
    if !restarts {
        return;
    }
    let failure = snapshot
        .history
        .containers
        .get(&container.name)
        .and_then(|history| history.failure.as_ref());
    let crash = exit.and_then(|exit| {
        snapshot
            .history
            .crash_wait(container, exit.finished_at, now)
            .map(|(_, delay)| delay)
    });
    let (reason, message) = match (failure, crash) {
        (Some(failure), _) => image::shown(failure, &container.image, now),
        (None, Some(delay)) => (
            CRASH_LOOP_BACK_OFF.into(),
            crash_message(snapshot, container, delay),
        ),
        (None, None) => return,
    };
    let state = std::mem::replace(&mut status.state, waiting(&reason, &message));
    if let ContainerState::Terminated(end) = state {
        status.last_state = Some(end);
    }
}

/// Waiting reason of a container in crash back-off.
const CRASH_LOOP_BACK_OFF: &str = "CrashLoopBackOff";

fn crash_message(
    snapshot: &PodSnapshot<'_>,
    container: &Container,
    delay: std::time::Duration,
) -> Box<str> {
    let pod = snapshot.pod;
    format!(
        "back-off {} restarting failed container={} pod={}_{}({})",
        format_go(delay),
        container.name,
        pod.name.name,
        pod.name.namespace,
        pod.uid
    )
    .into()
}

fn default_waiting(snapshot: &PodSnapshot<'_>, is_init: bool) -> ContainerState {
    if is_init || !snapshot.pod.spec.init_containers.is_empty() {
        waiting("PodInitializing", "")
    } else {
        waiting("ContainerCreating", "")
    }
}

fn waiting(reason: &str, message: &str) -> ContainerState {
    ContainerState::Waiting {
        reason: reason.into(),
        message: message.into(),
    }
}

fn terminated(exit: &Exit, id: &str) -> Terminated {
    Terminated {
        exit_code: exit.code,
        reason: exit.reason.clone(),
        message: exit.message.clone(),
        started_at: exit.started_at,
        finished_at: Some(exit.finished_at),
        container_id: id.into(),
    }
}

fn completed_unseen() -> Terminated {
    Terminated {
        exit_code: 0,
        reason: "Completed".into(),
        message: "Unable to get init container status from container runtime and pod has been \
                  initialized, treat it as exited normally"
            .into(),
        started_at: None,
        finished_at: None,
        container_id: "".into(),
    }
}

fn vanished(id: &str, started_at: Option<Timestamp>) -> Terminated {
    Terminated {
        exit_code: VANISHED_EXIT_CODE,
        reason: STATUS_UNKNOWN.into(),
        message: "".into(),
        started_at,
        finished_at: None,
        container_id: id.into(),
    }
}

fn started_before(old: Option<&ContainerStatus>) -> Option<Timestamp> {
    match old.map(|old| &old.state) {
        Some(ContainerState::Running { started_at }) => Some(*started_at),
        _ => None,
    }
}
