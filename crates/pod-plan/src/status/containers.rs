//! `containerStatuses` and `initContainerStatuses`.

use jiff::Timestamp;
use rubelet_api::{
    container::Container,
    pod::RestartPolicy,
    status::{ContainerState, ContainerStatus, Terminated},
};

use crate::{
    actions::{
        Actions, init_exit_code, policy_of, restart_requested, restarts_all, should_restart,
    },
    definition, image,
    observed::{ContainerPhase, Exit, ObservedContainer},
    probe::{ProbeKind, ProbeResult},
    snapshot::{PodSnapshot, Target},
};
use rubelet_base::duration::format_go;

/// Reason of a container that waits or was terminated because all containers are restarted.
pub(super) const RESTARTING_ALL: &str = "RestartingAllContainers";
/// Reason of a container that was running and no longer has a record in the runtime.
const STATUS_UNKNOWN: &str = "ContainerStatusUnknown";
/// Exit code of a container that vanished.
const VANISHED_EXIT_CODE: i32 = 137;

/// The kind of a container in the specification.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ContainerKind {
    Init,
    Sidecar,
    Regular,
    Ephemeral,
}

impl ContainerKind {
    fn is_init(self) -> bool {
        matches!(self, Self::Init | Self::Sidecar)
    }
}

/// Statuses of init containers in the order of the specification, and of regular and ephemeral
/// ones by name.
pub(super) fn all(
    snapshot: &PodSnapshot<'_>,
    actions: &Actions,
    now: Timestamp,
) -> [Vec<ContainerStatus>; 3] {
    let spec = &snapshot.pod.spec;
    let any_regular = spec
        .containers
        .iter()
        .any(|container| snapshot.observed.newest(&container.name).is_some());
    let builder = StatusBuilder {
        snapshot,
        actions,
        any_regular,
        now,
    };
    let init = spec
        .init_containers
        .iter()
        .map(|one| match one.restart_policy {
            Some(RestartPolicy::Always) => builder.status(one, ContainerKind::Sidecar),
            _ => builder.status(one, ContainerKind::Init),
        })
        .collect();
    let mut regular: Vec<ContainerStatus> = spec
        .containers
        .iter()
        .map(|one| builder.status(one, ContainerKind::Regular))
        .collect();
    regular.sort_by(|a, b| a.name.cmp(&b.name));
    let mut ephemeral: Vec<ContainerStatus> = spec
        .ephemeral_containers
        .iter()
        .map(|one| builder.status(&one.container, ContainerKind::Ephemeral))
        .collect();
    ephemeral.sort_by(|a, b| a.name.cmp(&b.name));
    [init, regular, ephemeral]
}

struct StatusBuilder<'a> {
    snapshot: &'a PodSnapshot<'a>,
    actions: &'a Actions,
    any_regular: bool,
    now: Timestamp,
}

impl StatusBuilder<'_> {
    fn status(&self, container: &Container, kind: ContainerKind) -> ContainerStatus {
        let snapshot = self.snapshot;
        let old = snapshot.published(&container.name);
        let (newest, before) = snapshot.observed.newest_two(&container.name);
        let mut status = match newest {
            Some(found) => status_from_record(container, found, before, old),
            None => status_without_record(snapshot, container, old, kind, self.any_regular),
        };
        // It never goes down: records of earlier instances may be gone.
        status.restart_count = status
            .restart_count
            .max(old.map_or(0, |old| old.restart_count));
        if kind != ContainerKind::Ephemeral || newest.is_none() {
            wait_for_restart(
                snapshot,
                self.actions,
                container,
                newest,
                kind.is_init(),
                self.now,
                &mut status,
            );
        }
        let running = newest.filter(|_| matches!(status.state, ContainerState::Running { .. }));
        status.started = match kind {
            ContainerKind::Sidecar | ContainerKind::Regular => {
                running.is_some_and(|found| snapshot.started(container, found))
            }
            ContainerKind::Init | ContainerKind::Ephemeral => running.is_some(),
        };
        status.ready = match kind {
            ContainerKind::Init => {
                matches!(&status.state, ContainerState::Terminated(end) if end.exit_code == 0)
            }
            ContainerKind::Sidecar | ContainerKind::Regular => {
                status.started
                    && running.is_some_and(|found| {
                        container.readiness.is_none()
                            || snapshot.probe_outcome(found, ProbeKind::Readiness)
                                == Some(ProbeResult::Success)
                    })
            }
            ContainerKind::Ephemeral => false,
        };
        status
    }
}

/// The status of a container with a record in the runtime.
fn status_from_record(
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
    // From the runtime's record, else from the published status, which outlives the record.
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
        user: found.user.clone(),
        recursive_read_only: found.recursive_read_only.clone(),
    }
}

/// The status of a container without a record in the runtime: never created, or lost.
fn status_without_record(
    snapshot: &PodSnapshot<'_>,
    container: &Container,
    old: Option<&ContainerStatus>,
    kind: ContainerKind,
    any_regular: bool,
) -> ContainerStatus {
    let completed = kind == ContainerKind::Init && any_regular;
    let Some(old) = old else {
        return ContainerStatus {
            name: container.name.clone(),
            image: container.image.clone(),
            image_id: "".into(),
            container_id: "".into(),
            ready: false,
            started: false,
            restart_count: 0,
            state: if completed {
                ContainerState::Terminated(completed_without_record())
            } else {
                default_waiting(snapshot, kind)
            },
            last_state: None,
            user: None,
            recursive_read_only: Vec::new(),
        };
    };
    let mut status = old.clone();
    let starts_again = snapshot.target == Target::Run;
    match &old.state {
        ContainerState::Waiting { .. } => status.state = default_waiting(snapshot, kind),
        ContainerState::Terminated(end) if starts_again && snapshot.was_restarting_all() => {
            let mut end = end.clone();
            if !restarts_all(container, end.exit_code) {
                end.reason = RESTARTING_ALL.into();
            }
            status.last_state = Some(end);
            status.state = waiting(RESTARTING_ALL, "");
        }
        ContainerState::Terminated(_) => {}
        ContainerState::Running { .. } if completed => {
            status.state = ContainerState::Terminated(completed_without_record());
        }
        ContainerState::Running { started_at } => {
            let mut end = vanished(&old.container_id, Some(*started_at));
            end.message = "The container could not be located when the pod was deleted.  \
                           The container used to be Running"
                .into();
            let policy = policy_of(container, snapshot.pod.spec.restart_policy);
            if starts_again && policy != RestartPolicy::Never && kind != ContainerKind::Ephemeral {
                status.last_state = Some(end);
                status.restart_count = old.restart_count.saturating_add(1);
                status.state = default_waiting(snapshot, kind);
            } else {
                status.state = ContainerState::Terminated(end);
            }
        }
    }
    status
}

/// Shows a terminated container that will be restarted as waiting, with the reason of the last
/// failed start or of the crash back-off; its termination moves to `lastState`.
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
        || actions.pod_failure.is_some()
        || actions.restarting_all
        || snapshot.previous.is_some_and(|old| old.phase.is_terminal())
    {
        return;
    }
    let exit = newest.and_then(|found| found.phase.exit());
    let restarts = match (newest, exit) {
        (None, _) => true,
        (Some(found), Some(exit)) => {
            // An init container that succeeded has completed; a sidecar never completes.
            let sidecar = container.restart_policy == Some(RestartPolicy::Always);
            let counts = !is_init || sidecar || exit.failed();
            let code = if is_init {
                init_exit_code(exit)
            } else {
                exit.code
            };
            definition::container_changed(container, found)
                || restart_requested(snapshot, &container.name)
                || counts && should_restart(container, snapshot.pod.spec.restart_policy, code)
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
    });
    let failed = failure.map(|failure| failure.reason.clone());
    // The longer of two back-offs is shown.
    let failure = failure.filter(|failure| {
        let longer = crash.is_none_or(|(until, _)| until <= failure.retry_at());
        image::is_pull_failure(&failure.reason)
            || longer && (failure.waits_until(now).is_some() || exit.is_none())
    });
    let (reason, message) = match (failure, crash) {
        (Some(failure), _) => image::shown(failure, &container.image, now),
        (None, Some((_, delay))) => (
            CRASH_LOOP_BACK_OFF.into(),
            crash_message(snapshot, container, delay),
        ),
        // The back-off is over: the shown state stays until the next instance exists.
        (None, None) => match snapshot.published(&container.name) {
            Some(ContainerStatus {
                container_id,
                state: ContainerState::Waiting { reason, message },
                ..
            }) if (**reason == *CRASH_LOOP_BACK_OFF || failed.as_ref() == Some(reason))
                && *container_id == status.container_id =>
            {
                (reason.clone(), message.clone())
            }
            _ => return,
        },
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

fn default_waiting(snapshot: &PodSnapshot<'_>, kind: ContainerKind) -> ContainerState {
    if kind.is_init()
        || kind == ContainerKind::Regular && !snapshot.pod.spec.init_containers.is_empty()
    {
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

pub(super) fn terminated(exit: &Exit, id: &str) -> Terminated {
    Terminated {
        exit_code: exit.code,
        reason: exit.reason.clone(),
        message: exit.message.clone(),
        started_at: exit.started_at,
        finished_at: Some(exit.finished_at),
        container_id: id.into(),
    }
}

fn completed_without_record() -> Terminated {
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
