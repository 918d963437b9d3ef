//! Durations and container exits in words.

use jiff::Timestamp;

use rubelet_server::explanation::{EndExplanation, VolumeCopy};

use crate::size::size;

/// A duration in its two largest units: `38 s`, `4 min 10 s`, `3 h`.
pub(super) fn span(seconds: u64) -> String {
    const UNITS: [(u64, &str); 4] = [(86_400, "d"), (3600, "h"), (60, "min"), (1, "s")];
    let first = UNITS.iter().position(|(unit, _)| seconds >= *unit);
    let Some(first) = first else {
        return "0 s".to_owned();
    };
    let (unit, name) = UNITS[first];
    let mut text = format!("{} {name}", seconds / unit);
    if let Some((small, small_name)) = UNITS.get(first + 1) {
        let rest = seconds % unit / small;
        if rest > 0 {
            text.push_str(&format!(" {rest} {small_name}"));
        }
    }
    text
}

/// The duration between two times; zero if they are in the wrong order, which a clock step can
/// cause.
pub(super) fn between(from: Timestamp, to: Timestamp) -> u64 {
    u64::try_from(to.duration_since(from).as_secs()).unwrap_or_default()
}

/// The time until a future point, rounded up; `None` if it has passed.
pub(super) fn left(until: Timestamp, now: Timestamp) -> Option<u64> {
    let millis = until.duration_since(now).as_millis();
    u64::try_from(millis)
        .ok()
        .filter(|millis| *millis > 0)
        .map(|millis| millis.div_ceil(1000))
}

/// `2 s ago`.
pub(super) fn ago(then: Timestamp, now: Timestamp) -> String {
    match between(then, now) {
        0 => "just now".to_owned(),
        seconds => format!("{} ago", span(seconds)),
    }
}

/// `in 38 s`, or `now`.
pub(super) fn in_time(at: Timestamp, now: Timestamp) -> String {
    match left(at, now) {
        Some(seconds) => format!("in {}", span(seconds)),
        None => "now".to_owned(),
    }
}

/// `exit code 139 (SIGSEGV)`.
pub(super) fn exit(code: i32, signal: Option<&str>) -> String {
    match signal {
        Some(signal) => format!("exit code {code} ({signal})"),
        None => format!("exit code {code}"),
    }
}

/// The progress of a copy of volumes, as the rest of a sentence about them.
pub(super) fn copied(copy: &VolumeCopy) -> String {
    let VolumeCopy {
        seconds,
        begun,
        files,
        bytes,
    } = copy;
    match begun {
        true => format!(
            "have been copied for {}: {files} files, {} so far",
            span(*seconds),
            size(*bytes)
        ),
        false => format!(
            "have been waiting for {} until those of other containers are copied",
            span(*seconds)
        ),
    }
}

/// Why an instance exited, as the rest of a sentence about a container.
pub(super) fn cause(end: &EndExplanation, now: Timestamp) -> String {
    let when = ago(end.finished_at, now);
    let exit = exit(end.exit_code, end.signal.as_deref());
    if !end.stopped_because.is_empty() {
        return format!(
            "the agent stopped it {when}, as {}; {exit}",
            end.stopped_because
        );
    }
    match (end.reason.as_str(), end.started_at) {
        ("OOMKilled", _) => format!("it ran out of memory {when}; {exit}"),
        (_, None) => format!("it could not be started {when}; {exit}"),
        _ => format!("it ended {when} with {exit}"),
    }
}

/// `once`, `twice`, `3 times`.
pub(super) fn times(count: u32) -> String {
    match count {
        1 => "once".to_owned(),
        2 => "twice".to_owned(),
        count => format!("{count} times"),
    }
}

/// A reason and a message as one.
pub(super) fn reason(reason: &str, message: &str) -> String {
    match (reason, message.trim_end()) {
        ("", "") => String::new(),
        (reason, "") => reason.to_owned(),
        ("", message) => message.to_owned(),
        (reason, message) => format!("{reason}: {message}"),
    }
}

/// The first line of a text that may have many.
pub(super) fn first_line(text: &str) -> &str {
    text.lines()
        .map(str::trim)
        .find(|line| !line.is_empty())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_have_two_units_at_most() {
        for (seconds, text) in [
            (0, "0 s"),
            (59, "59 s"),
            (60, "1 min"),
            (250, "4 min 10 s"),
            (3600, "1 h"),
            (12_000, "3 h 20 min"),
            (90_061, "1 d 1 h"),
            (864_000, "10 d"),
        ] {
            assert_eq!(span(seconds), text);
        }
    }

    #[test]
    fn clocks_that_were_set_back_do_no_harm() {
        let (early, late): (Timestamp, Timestamp) = (
            "2026-03-01T12:00:00Z".parse().expect("a time"),
            "2026-03-01T12:00:09.2Z".parse().expect("a time"),
        );
        assert_eq!(ago(late, early), "just now");
        assert_eq!(ago(early, late), "9 s ago");
        assert_eq!(in_time(early, late), "now");
        assert_eq!(in_time(late, early), "in 10 s");
    }
}
