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
    step_failure::StepFailure,
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
        let can_wait = kind != ContainerKind::Ephemeral || newest.is_none();
        if can_wait
            && let Some(wait) = self.restart_wait(container, newest, kind, &status.container_id)
        {
            let shown = waiting(&wait.reason, &wait.message);
            let state = std::mem::replace(&mut status.state, shown);
            if let ContainerState::Terminated(end) = state {
                status.last_state = Some(end);
            }
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

    /// How a container that starts again is shown as waiting: with the reason of the last failed
    /// start or of the crash back-off. `None` if its state is shown as it is. `container_id` is
    /// that of its status.
    fn restart_wait(
        &self,
        container: &Container,
        newest: Option<&ObservedContainer>,
        kind: ContainerKind,
        container_id: &str,
    ) -> Option<Waiting> {
        let (snapshot, now) = (self.snapshot, self.now);
        if !self.starts_containers() || !starts_again(snapshot, container, newest, kind) {
            return None;
        }
        let history = snapshot.history.containers.get(&container.name);
        let failure = history.and_then(|history| history.failure.as_ref());
        let exit = newest.and_then(|found| found.phase.exit());
        let crash = exit.and_then(|exit| {
            let finished_at = exit.finished_at;
            snapshot.history.crash_wait(container, finished_at, now)
        });
        let crash_until = crash.map(|(until, _)| until);
        if let Some(failure) = failure
            && shows_failure(failure, exit, crash_until, now)
        {
            let (reason, message) = image::shown(failure, &container.image, now);
            return Some(Waiting { reason, message });
        }
        if let Some((_, delay)) = crash {
            return Some(Waiting {
                reason: CRASH_LOOP_BACK_OFF.into(),
                message: crash_message(snapshot, container, delay),
            });
        }
        let old = snapshot.published(&container.name)?;
        let ContainerState::Waiting { reason, message } = &old.state else {
            return None;
        };
        let keeps = keeps_shown_wait(reason, failure) && *old.container_id == *container_id;
        keeps.then(|| Waiting {
            reason: reason.clone(),
            message: message.clone(),
        })
    }

    /// Whether the pod starts containers one by one: it is not ending, and its containers are not
    /// all restarted together.
    fn starts_containers(&self) -> bool {
        let snapshot = self.snapshot;
        snapshot.target == Target::Run
            && self.actions.pod_failure.is_none()
            && !self.actions.restarting_all
            && !snapshot.previous.is_some_and(|old| old.phase.is_terminal())
    }
}

/// Reason and message of a container that waits.
struct Waiting {
    reason: Box<str>,
    message: Box<str>,
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
        ContainerPhase::Unknown => ContainerState::Terminated(lost(id, started_before(old))),
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

/// Whether another instance of a container starts, now or after a back-off.
fn starts_again(
    snapshot: &PodSnapshot<'_>,
    container: &Container,
    newest: Option<&ObservedContainer>,
    kind: ContainerKind,
) -> bool {
    let Some(found) = newest else {
        return true;
    };
    let Some(exit) = found.phase.exit() else {
        return matches!(found.phase, ContainerPhase::Created);
    };
    // An init container that succeeded has completed; a sidecar never completes.
    let completed = kind == ContainerKind::Init && !exit.failed();
    let code = if kind.is_init() {
        init_exit_code(exit)
    } else {
        exit.code
    };
    definition::container_changed(container, found)
        || restart_requested(snapshot, &container.name)
        || !completed && should_restart(container, snapshot.pod.spec.restart_policy, code)
}

/// Whether the failure of the last start is shown, not the crash back-off: a failed pull always,
/// another failure if its back-off is the longer one.
fn shows_failure(
    failure: &StepFailure,
    exit: Option<&Exit>,
    crash_until: Option<Timestamp>,
    now: Timestamp,
) -> bool {
    let longer = crash_until.is_none_or(|until| until <= failure.retry_at());
    image::is_pull_failure(&failure.reason)
        || longer && (failure.waits_until(now).is_some() || exit.is_none())
}

/// Whether the shown reason of a wait stays although its back-off is over: it does until the next
/// instance exists.
fn keeps_shown_wait(reason: &str, failure: Option<&StepFailure>) -> bool {
    reason == CRASH_LOOP_BACK_OFF || failure.is_some_and(|failure| *failure.reason == *reason)
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

/// The end of a container that was not observed before its pod ended.
pub(super) fn lost(id: &str, started_at: Option<Timestamp>) -> Terminated {
    Terminated {
        message: "The container could not be located when the pod was terminated".into(),
        ..vanished(id, started_at)
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
