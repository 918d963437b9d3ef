//! The one-sentence answer.

use jiff::Timestamp;

use super::words::{
    ago, between, cause, copied, exit, first_line, in_time, left, reason, span, times,
};
use rubelet_server::explanation::{
    ContainerExplanation, ContainerKind, ExplainedState, PodExplanation, ProbeExplanation,
};

/// The pod's state, and its cause.
pub(super) fn of(pod: &PodExplanation) -> String {
    let name = format!("pod {}/{}", pod.namespace, pod.name);
    format!("{name} {}", predicate(pod))
}

fn predicate(pod: &PodExplanation) -> String {
    let now = pod.time;
    if pod.ending.is_some() {
        let edits = pod.manifest_edits.as_ref();
        return match edits.is_some_and(|edits| edits.being_replaced) {
            true => format!("{}; then its manifest starts another one", ending(pod)),
            false => ending(pod),
        };
    }
    match pod.phase.as_str() {
        "Succeeded" => return succeeded(pod),
        "Failed" => return failed(pod),
        _ => {}
    }
    if let Some(trouble) = pod.sandbox.as_ref().filter(|_| !pod.ready) {
        return format!(
            "cannot start: {}; next try {}",
            first_line(&trouble.message),
            in_time(trouble.next_try, now)
        );
    }
    if let Some(container) = blocker(pod) {
        return format!("is not ready: {}", keeps_back(container, now));
    }
    if pod.ready {
        return ready(pod);
    }
    let mut gates = pod.readiness_gates.iter().filter(|gate| !gate.is_open());
    if let Some(gate) = gates.next() {
        let more = match gates.count() {
            0 => String::new(),
            count => format!(", and {count} more readiness gates are closed"),
        };
        let condition = &gate.condition;
        return match &gate.status {
            None => format!(
                "is not ready: all its containers are, but the condition {condition}, which is a \
                 readiness gate, is not set{more}"
            ),
            Some(status) => format!(
                "is not ready: all its containers are, but the condition {condition}, which is a \
                 readiness gate, is {status}{}{more}",
                in_brackets(&reason(&gate.reason, &gate.message))
            ),
        };
    }
    match pod.plan.first() {
        Some(why) => format!("is not ready yet: {why}"),
        None => "is not ready yet: the agent has not looked at it".to_owned(),
    }
}

fn in_brackets(text: &str) -> String {
    match first_line(text) {
        "" => String::new(),
        text => format!(" ({text})"),
    }
}

fn ending(pod: &PodExplanation) -> String {
    let Some(ending) = &pod.ending else {
        return String::new();
    };
    let grace = span(ending.grace_seconds);
    if let Some(trouble) = &pod.teardown {
        return format!(
            "is ending, but something could not be stopped or removed: {}; next try {}",
            first_line(&trouble.message),
            in_time(trouble.next_try, pod.time)
        );
    }
    let runs = |container: &&ContainerExplanation| {
        matches!(container.state, ExplainedState::Running { .. })
    };
    if !pod.containers.iter().any(|container| runs(&container)) {
        return "is ending: its containers have ended, the rest of it is being removed".to_owned();
    }
    match left(ending.kill_at, pod.time) {
        Some(seconds) => format!(
            "is ending since {}: what still runs gets SIGKILL in {} (grace {grace})",
            span(between(ending.since, pod.time)),
            span(seconds)
        ),
        None => format!(
            "is ending: its grace of {grace} is over since {}, and what still runs is being killed",
            span(between(ending.kill_at, pod.time))
        ),
    }
}

fn succeeded(pod: &PodExplanation) -> String {
    let when = pod.since.map_or_else(String::new, |at| {
        format!(", the last one {}", ago(at, pod.time))
    });
    format!("has succeeded: its containers ended with exit code 0{when}, and none is started again")
}

fn failed(pod: &PodExplanation) -> String {
    let own = reason(&pod.reason, &pod.message);
    if !own.is_empty() {
        return format!("has failed: {}", first_line(&own));
    }
    let mut bad = pod.containers.iter().filter(
        |container| matches!(container.state, ExplainedState::Ended { exit_code, .. } if exit_code != 0),
    );
    match bad.next() {
        Some(container) => format!("has failed: {}", keeps_back(container, pod.time)),
        None => "has failed".to_owned(),
    }
}

fn ready(pod: &PodExplanation) -> String {
    let since = pod.ready_since.map_or_else(String::new, |at| {
        format!(" for {}", span(between(at, pod.time)))
    });
    let restarted = pod
        .containers
        .iter()
        .filter(|container| container.kind != ContainerKind::Ephemeral)
        .filter_map(|container| Some((container, container.ends.first()?)))
        .filter(|(container, _)| matches!(container.state, ExplainedState::Running { .. }))
        .max_by_key(|(_, end)| end.finished_at);
    match restarted {
        Some((container, end)) => format!(
            "is ready{since}; {} was last restarted because {}",
            subject(container),
            cause(end, pod.time)
        ),
        None => format!("is ready{since}, and no container of it was restarted"),
    }
}

/// The container that keeps the pod from being ready: the first one of the first group to start,
/// else the one in the worst state.
fn blocker(pod: &PodExplanation) -> Option<&ContainerExplanation> {
    let all = || pod.containers.iter();
    let mut starting = all().filter(|container| match container.kind {
        ContainerKind::Init => {
            !matches!(container.state, ExplainedState::Ended { exit_code: 0, .. })
        }
        ContainerKind::Sidecar => !container.started,
        _ => false,
    });
    let regular_ran = all().any(|container| {
        container.kind == ContainerKind::Regular
            && !matches!(container.state, ExplainedState::Waiting { .. })
    });
    if let Some(first) = starting.next().filter(|_| !regular_ran) {
        return Some(first);
    }
    all()
        .filter(|container| {
            let counts = matches!(
                container.kind,
                ContainerKind::Sidecar | ContainerKind::Regular
            );
            counts && !container.ready && !pod.ready
        })
        .min_by_key(|container| match &container.state {
            ExplainedState::Waiting { reason, .. } if is_start(reason) => 3,
            ExplainedState::Waiting { .. } => 0,
            ExplainedState::Ended { .. } => 1,
            ExplainedState::Running { .. } => 2,
        })
}

/// Waiting reasons that are not a problem.
fn is_start(reason: &str) -> bool {
    matches!(reason, "" | "ContainerCreating" | "PodInitializing")
}

fn subject(container: &ContainerExplanation) -> String {
    format!("{} {}", container.kind.words(), container.name)
}

/// Why a container is not ready.
fn keeps_back(container: &ContainerExplanation, now: Timestamp) -> String {
    let subject = subject(container);
    let asked = match container.restart_asked {
        Some(at) => format!("; its restart was asked for {}", ago(at, now)),
        None => String::new(),
    };
    let words = match &container.state {
        ExplainedState::Waiting {
            reason: why,
            message,
        } => waits(container, &subject, why, message, now),
        ExplainedState::Running { since } => runs(container, &subject, *since, now),
        ExplainedState::Ended {
            at,
            exit_code,
            signal,
            ..
        } => {
            let when = at.map_or_else(String::new, |at| format!(" {}", ago(at, now)));
            let exit = exit(*exit_code, signal.as_deref());
            format!("{subject} ended{when} with {exit} and is not started again")
        }
    };
    words + &asked
}

fn waits(
    container: &ContainerExplanation,
    subject: &str,
    why: &str,
    message: &str,
    now: Timestamp,
) -> String {
    if container.post_start_runs {
        return format!("{subject} was started, and its postStart hook has not ended yet");
    }
    if let Some(copy) = &container.volume_copy {
        return format!(
            "{subject} is being created, and the volumes of its image {}",
            copied(copy)
        );
    }
    let next_try = container
        .next_try
        .map_or_else(String::new, |at| format!("; next try {}", in_time(at, now)));
    if let Some(trouble) = &container.failed_start {
        let what = reason(&trouble.reason, first_line(&trouble.message));
        return format!("{subject} cannot start: {what}{next_try}");
    }
    let wait = container.next_try.and_then(|at| left(at, now));
    let number = container.restarts.saturating_add(1);
    match (container.ends.first(), wait) {
        (Some(end), Some(wait)) => format!(
            "{subject} is waiting {} before restart {number}, because {}",
            span(wait),
            cause(end, now)
        ),
        (Some(end), None) if why == "CrashLoopBackOff" => {
            format!(
                "{subject} is about to be restarted, because {}",
                cause(end, now)
            )
        }
        _ if is_start(why) => format!("{subject} has not been started yet{next_try}"),
        _ => format!(
            "{subject} is waiting: {}{next_try}",
            reason(why, first_line(message))
        ),
    }
}

fn runs(
    container: &ContainerExplanation,
    subject: &str,
    since: Timestamp,
    now: Timestamp,
) -> String {
    let time = span(between(since, now));
    if container.kind == ContainerKind::Init {
        return format!("{subject} has been running for {time}, and the others wait for its end");
    }
    if container.post_start_runs {
        return format!(
            "{subject} has been running for {time}, and its postStart hook has not ended yet"
        );
    }
    let kind = match container.has_startup_probe && !container.started {
        true => "startup",
        false => "readiness",
    };
    let probe = container.probes.iter().find(|probe| probe.kind == kind);
    match probe {
        Some(probe) => format!(
            "{subject} has been running for {time}, but its {kind} probe {}",
            fails(probe, now)
        ),
        None => format!(
            "{subject} has been running for {time}, but its {kind} probe has not succeeded yet"
        ),
    }
}

/// The report of a failing probe.
fn fails(probe: &ProbeExplanation, now: Timestamp) -> String {
    let (Some(at), Some(last)) = (probe.at, probe.last.as_deref()) else {
        return "has not been tried yet".to_owned();
    };
    let when = ago(at, now);
    let said = match first_line(&probe.output) {
        "" => String::new(),
        output => format!(": {output}"),
    };
    match (last, probe.in_a_row) {
        ("Success", count) => format!("has passed {}, which is not enough yet", times(count)),
        ("Failure", 0 | 1) => format!("failed {when}{said}"),
        ("Failure", count) => {
            format!(
                "failed {} in a row, the last time {when}{said}",
                times(count)
            )
        }
        ("Late", _) => format!("was tried too late to count, {when}"),
        _ => format!("could not be tried {when}{said}"),
    }
}
