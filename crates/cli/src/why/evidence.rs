//! The evidence behind the headline, container by container.

use jiff::Timestamp;
use rubelet_api::wire::seconds as time;

use super::words::{ago, between, copied, exit, in_time, reason, span, times};
use rubelet_server::explanation::{
    ContainerExplanation, ContainerKind, EndExplanation, ExplainedState, ManifestEditsExplanation,
    PodExplanation, ProbeExplanation, ReadinessGateExplanation,
};

/// Lines in progress.
#[derive(Default)]
struct Lines(String);

impl Lines {
    fn add(&mut self, level: usize, line: impl AsRef<str>) {
        self.0.push_str(&"  ".repeat(level));
        self.0.push_str(line.as_ref().trim_end());
        self.0.push('\n');
    }

    /// Text from elsewhere, each line behind a bar.
    fn quote<'a>(&mut self, level: usize, lines: impl IntoIterator<Item = &'a str>) {
        for line in lines {
            self.add(level, format!("| {line}"));
        }
    }
}

/// The evidence, indented by one level.
pub(super) fn of(pod: &PodExplanation) -> String {
    let mut lines = Lines::default();
    let now = pod.time;
    let since = |at: Option<Timestamp>| match at {
        Some(at) => format!(" for {} (since {})", span(between(at, now)), time(at)),
        None => String::new(),
    };
    lines.add(1, format!("phase {}{}", pod.phase, since(pod.since)));
    let own = reason(&pod.reason, &pod.message);
    if !own.is_empty() {
        lines.quote(2, own.lines());
    }
    let ready = if pod.ready { "ready" } else { "not ready" };
    lines.add(1, format!("{ready}{}", since(pod.ready_since)));
    if !pod.unconfirmed.is_empty() {
        let what = pod.unconfirmed.join(", ");
        lines.add(
            1,
            format!("not confirmed by the API server, used as known last: {what}"),
        );
    }
    if let Some(ending) = &pod.ending {
        lines.add(
            1,
            format!(
                "ending since {}, {}; grace {}; SIGKILL {} ({})",
                time(ending.since),
                ago(ending.since, now),
                span(ending.grace_seconds),
                in_time(ending.kill_at, now),
                time(ending.kill_at)
            ),
        );
    }
    if let Some(edits) = &pod.manifest_edits {
        manifest_edits(&mut lines, edits, now);
    }
    for (what, trouble) in [("sandbox", &pod.sandbox), ("removal", &pod.teardown)] {
        if let Some(trouble) = trouble {
            let head = format!(
                "{what} failed {}: {}; next try {}",
                ago(trouble.at, now),
                trouble.reason,
                in_time(trouble.next_try, now)
            );
            lines.add(1, head);
            lines.quote(2, trouble.message.lines());
        }
    }
    for one in &pod.containers {
        container(&mut lines, one, now);
    }
    for one in &pod.readiness_gates {
        lines.add(1, gate(one));
    }
    for why in &pod.plan {
        lines.add(1, format!("last plan: {why}"));
    }
    lines.0
}

fn manifest_edits(lines: &mut Lines, edits: &ManifestEditsExplanation, now: Timestamp) {
    const CAUSE: &str = "its manifest was edited, or removed and written again";
    if edits.being_replaced {
        lines.add(
            1,
            format!("another pod takes its place when it is gone: {CAUSE}"),
        );
    }
    if let Some(replaced) = &edits.replaced {
        let when = ago(replaced.at, now);
        lines.add(
            1,
            format!("took the place of pod {} {when}: {CAUSE}", replaced.uid),
        );
    }
    let mode = &edits.mode;
    let effect = match mode.as_str() {
        "Replace" => "replaces the whole pod",
        _ => "restarts only what it concerns",
    };
    lines.add(
        1,
        format!("an edit of its manifest {effect} (rubelet.staticPodEdits: {mode})"),
    );
}

fn gate(gate: &ReadinessGateExplanation) -> String {
    let status = match &gate.status {
        Some(status) => format!("is {status}"),
        None => "is not set".to_owned(),
    };
    match reason(&gate.reason, &gate.message) {
        text if text.is_empty() => format!("readiness gate {} {status}", gate.condition),
        text => format!(
            "readiness gate {} {status}: {}",
            gate.condition,
            text.replace('\n', " ")
        ),
    }
}

fn container(lines: &mut Lines, one: &ContainerExplanation, now: Timestamp) {
    let head = format!("{} {}: {}", one.kind.words(), one.name, state(one, now));
    lines.add(1, head);
    if let ExplainedState::Waiting { message, .. } | ExplainedState::Ended { message, .. } =
        &one.state
    {
        lines.quote(2, message.lines());
    }
    if one.post_start_runs {
        lines.add(2, "its postStart hook has not ended yet");
    }
    if let Some(copy) = &one.volume_copy {
        lines.add(2, format!("the volumes of its image {}", copied(copy)));
    }
    if one.restarts > 0 {
        lines.add(2, format!("restarted {}", times(one.restarts)));
    }
    if let Some(at) = one.restart_asked {
        lines.add(2, format!("restart asked for {}", ago(at, now)));
    }
    if let Some(at) = one.next_try {
        lines.add(2, format!("next try {} ({})", in_time(at, now), time(at)));
    }
    if let Some(back_off) = &one.back_off {
        lines.add(
            2,
            format!(
                "back-off {} after an exit; it is reset after {} of running",
                span(back_off.delay_seconds),
                span(back_off.reset_seconds)
            ),
        );
    }
    if let Some(trouble) = &one.failed_start {
        let head = format!("start failed {}: {}", ago(trouble.at, now), trouble.reason);
        lines.add(2, head);
        lines.quote(3, trouble.message.lines());
    }
    for one in &one.probes {
        probe(lines, one, now);
    }
    for one in &one.ends {
        end(lines, one, now);
    }
    if !one.log.is_empty() {
        lines.add(2, "last lines of its log");
        lines.quote(3, one.log.iter().map(String::as_str));
    }
}

fn state(one: &ContainerExplanation, now: Timestamp) -> String {
    match &one.state {
        ExplainedState::Waiting { reason, .. } if reason.is_empty() => "waiting".to_owned(),
        ExplainedState::Waiting { reason, .. } => format!("waiting, {reason}"),
        ExplainedState::Running { since } => {
            let ready = match (one.kind, one.ready) {
                (ContainerKind::Init | ContainerKind::Ephemeral, _) => "",
                (_, true) => ", ready",
                (_, false) => ", not ready",
            };
            format!("running for {}{ready}", span(between(*since, now)))
        }
        ExplainedState::Ended {
            at,
            exit_code,
            signal,
            reason,
            ..
        } => {
            let when = at.map_or_else(String::new, |at| format!(" {}", ago(at, now)));
            let exit = exit(*exit_code, signal.as_deref());
            format!("ended{when} with {exit}{}", special(reason))
        }
    }
}

/// The runtime's reason, unless it only repeats the exit code.
fn special(reason: &str) -> String {
    match reason {
        "" | "Error" | "Completed" => String::new(),
        reason => format!(", {reason}"),
    }
}

fn probe(lines: &mut Lines, one: &ProbeExplanation, now: Timestamp) {
    let mut line = format!("{} probe ", one.kind);
    match (one.at, one.last.as_deref()) {
        (Some(at), Some(last)) => {
            line.push_str(&match last {
                "Success" => format!("passes, {} in a row", one.in_a_row),
                "Failure" => format!("fails, {} in a row", one.in_a_row),
                "Late" => "was tried too late to count".to_owned(),
                _ => "could not be tried".to_owned(),
            });
            let when = ago(at, now);
            line.push_str(&format!(", the last {when} in {} ms", one.latency_millis));
            match (last, one.outcome.as_str()) {
                ("Failure", "Success" | "Unknown") => {
                    line.push_str(&format!("; it takes {} to count", one.failure_threshold));
                }
                ("Success", "Failure" | "Unknown") => line.push_str("; not enough to count yet"),
                _ => {}
            }
        }
        _ => line.push_str("was not tried yet"),
    }
    if let Some(next) = one.next {
        line.push_str(&format!("; next {}", in_time(next, now)));
    }
    if one.late > 0 {
        let late = u32::try_from(one.late).unwrap_or(u32::MAX);
        line.push_str(&format!("; the agent was late {}", times(late)));
    }
    lines.add(2, line);
    lines.quote(3, one.output.lines().take(5));
}

fn end(lines: &mut Lines, one: &EndExplanation, now: Timestamp) {
    let ran = match one.started_at {
        Some(started) => match between(started, one.finished_at) {
            0 => "ran less than 1 s and ended".to_owned(),
            seconds => format!("ran {} and ended", span(seconds)),
        },
        None => "never ran; its start failed".to_owned(),
    };
    let exit = exit(one.exit_code, one.signal.as_deref());
    let because = match one.stopped_because.as_str() {
        "" => String::new(),
        why => format!("; the agent stopped it, as {why}"),
    };
    lines.add(
        2,
        format!(
            "instance {} {ran} {} with {exit}{}{because}",
            one.restart_count,
            ago(one.finished_at, now),
            special(&one.reason)
        ),
    );
    lines.quote(3, one.message.lines().take(5));
    lines.quote(3, one.log.iter().map(String::as_str));
}
