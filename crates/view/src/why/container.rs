//! One container of a pod that is explained.

use std::{collections::BTreeMap, time::Duration};

use jiff::Timestamp;
use rubelet_api::{
    container::Container,
    pod::RestartPolicy,
    status::{ContainerState, ContainerStatus, Terminated},
};
use rubelet_node_state::pod_board::PodEntry;
use rubelet_pod_plan::{
    OperatorIntents,
    history::{CRASH_RESET, ContainerHistory, Termination},
};
use rubelet_probes::ProbeStatus;

use super::failure;
use rubelet_server::explanation::{
    BackOff, ContainerExplanation, ContainerKind, EndExplanation, ExplainedState, ProbeExplanation,
};

/// Input of an explanation.
pub(super) struct Facts<'a> {
    pub(super) entry: &'a PodEntry,
    pub(super) intents: &'a OperatorIntents,
    pub(super) probes: &'a [ProbeStatus],
    pub(super) next_tries: &'a BTreeMap<Box<str>, Timestamp>,
}

/// All containers, in the order in which they start.
pub(super) fn all(facts: &Facts<'_>) -> Vec<ContainerExplanation> {
    let spec = &facts.entry.pod.spec;
    let init = spec.init_containers.iter().map(|container| {
        let kind = match container.restart_policy {
            Some(RestartPolicy::Always) => ContainerKind::Sidecar,
            _ => ContainerKind::Init,
        };
        (kind, container)
    });
    let regular = spec.containers.iter();
    let regular = regular.map(|container| (ContainerKind::Regular, container));
    let ephemeral = spec.ephemeral_containers.iter();
    let ephemeral = ephemeral.map(|one| (ContainerKind::Ephemeral, &one.container));
    init.chain(regular)
        .chain(ephemeral)
        .map(|(kind, container)| one(facts, kind, container))
        .collect()
}

fn one(facts: &Facts<'_>, kind: ContainerKind, container: &Container) -> ContainerExplanation {
    let name = &*container.name;
    let status = facts.entry.status.container(name);
    let history = facts.entry.history.containers.get(name);
    let current = status.map_or("", |status| &*status.container_id);
    let asked = facts.intents.restarts.get(name).filter(|intent| {
        let instance = intent.instance.as_ref();
        instance.map_or("", |id| id.as_str()) == current
    });
    ContainerExplanation {
        name: name.to_owned(),
        kind,
        state: state(status),
        ready: status.is_some_and(|status| status.ready),
        started: status.is_some_and(|status| status.started),
        has_startup_probe: container.startup.is_some(),
        post_start_runs: history.is_some_and(|history| post_start_runs(history, status)),
        restarts: status.map_or(0, |status| status.restart_count),
        restart_asked: asked.map(|intent| intent.at),
        next_try: facts.next_tries.get(name).copied(),
        volume_copy: None,
        failed_start: history
            .and_then(|history| history.failure.as_ref())
            .map(failure),
        back_off: history.and_then(back_off),
        ends: history.map_or_else(Vec::new, |history| history.ends.iter().map(end).collect()),
        probes: facts
            .probes
            .iter()
            .filter(|report| *report.container == *name)
            .map(|report| probe(report, container))
            .collect(),
        log: Vec::new(),
    }
}

/// Whether a postStart hook runs. The status shows the new instance only after the hook;
/// `post_start` also stays set after a failed start.
fn post_start_runs(history: &ContainerHistory, status: Option<&ContainerStatus>) -> bool {
    let Some(owed) = &history.post_start else {
        return false;
    };
    match status {
        Some(status) if *status.container_id == *owed.as_str() => true,
        Some(status) => {
            let waits = matches!(status.state, ContainerState::Waiting { .. });
            waits && history.failure.is_none()
        }
        None => history.failure.is_none(),
    }
}

fn state(status: Option<&ContainerStatus>) -> ExplainedState {
    match status.map(|status| &status.state) {
        None => ExplainedState::Waiting {
            reason: String::new(),
            message: String::new(),
        },
        Some(ContainerState::Waiting { reason, message }) => ExplainedState::Waiting {
            reason: reason.to_string(),
            message: message.to_string(),
        },
        Some(ContainerState::Running { started_at }) => {
            ExplainedState::Running { since: *started_at }
        }
        Some(ContainerState::Terminated(end)) => ended(end),
    }
}

fn ended(end: &Terminated) -> ExplainedState {
    ExplainedState::Ended {
        at: end.finished_at,
        exit_code: end.exit_code,
        signal: signal(end.exit_code),
        reason: end.reason.to_string(),
        message: end.message.to_string(),
    }
}

fn back_off(history: &ContainerHistory) -> Option<BackOff> {
    let crash = history.crash.as_ref()?;
    Some(BackOff {
        delay_seconds: crash.delay.as_secs(),
        reset_seconds: CRASH_RESET.as_secs(),
    })
}

fn end(end: &Termination) -> EndExplanation {
    EndExplanation {
        container_id: end.id.as_str().to_owned(),
        restart_count: end.restart_count,
        started_at: end.started_at,
        finished_at: end.finished_at,
        exit_code: end.exit_code,
        signal: signal(end.exit_code),
        reason: end.reason.to_string(),
        message: end.message.to_string(),
        stopped_because: end.stopped_because.to_string(),
        log: end.log.iter().map(ToString::to_string).collect(),
    }
}

fn probe(report: &ProbeStatus, container: &Container) -> ProbeExplanation {
    ProbeExplanation {
        kind: report.kind.as_str().to_lowercase(),
        outcome: format!("{:?}", report.outcome),
        last: report.last.map(|attempt| format!("{attempt:?}")),
        in_a_row: report.length,
        failure_threshold: report
            .kind
            .of(container)
            .map_or(0, |probe| probe.failure_threshold),
        at: report.at,
        latency_millis: millis(report.latency),
        output: report.output.to_string(),
        late: report.late,
        next: report.next,
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// The signal that killed a process, from the exit code that runtimes derive from it.
fn signal(exit_code: i32) -> Option<String> {
    /// Linux's signals on all machines that containers run on, from 1.
    const NAMES: [&str; 31] = [
        "HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2",
        "PIPE", "ALRM", "TERM", "STKFLT", "CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG",
        "XCPU", "XFSZ", "VTALRM", "PROF", "WINCH", "IO", "PWR", "SYS",
    ];
    let number = usize::try_from(exit_code.checked_sub(129)?).ok()?;
    NAMES.get(number).map(|name| format!("SIG{name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_codes_above_128_stand_for_signals() {
        for (code, name) in [
            (0, None),
            (1, None),
            (128, None),
            (129, Some("SIGHUP")),
            (134, Some("SIGABRT")),
            (137, Some("SIGKILL")),
            (139, Some("SIGSEGV")),
            (143, Some("SIGTERM")),
            (159, Some("SIGSYS")),
            (160, None),
            (255, None),
            (-1, None),
            (i32::MIN, None),
        ] {
            assert_eq!(signal(code).as_deref(), name, "{code}");
        }
    }
}
