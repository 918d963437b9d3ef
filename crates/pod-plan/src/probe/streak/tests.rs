//! Tests of `streak`.

use std::time::Duration;

use rubelet_api::probe::ProbeHandler;

use super::*;
use ProbeKind::*;

fn probe(success_threshold: u32, failure_threshold: u32) -> Probe {
    Probe {
        handler: ProbeHandler::Exec(Vec::new()),
        initial_delay: Duration::ZERO,
        period: Duration::from_secs(10),
        timeout: Duration::from_secs(1),
        success_threshold,
        failure_threshold,
        termination_grace: None,
    }
}

/// What the outcome is after each attempt: `s` succeeded, `f` failed, `e` errored, `l` was late.
/// `!` stands where the outcome changed, `#` where the probe is not tried again.
fn play(kind: ProbeKind, initial: ProbeResult, thresholds: (u32, u32), attempts: &str) -> String {
    let probe = probe(thresholds.0, thresholds.1);
    let mut streak = ProbeStreak::new(kind, initial);
    let mut played = String::new();
    for attempt in attempts.chars() {
        let changed = streak.note(
            match attempt {
                's' => AttemptOutcome::Success,
                'f' => AttemptOutcome::Failure,
                'e' => AttemptOutcome::Errored,
                _ => AttemptOutcome::Late,
            },
            &probe,
        );
        played.push(match streak.outcome() {
            ProbeResult::Unknown => 'U',
            ProbeResult::Success => 'S',
            ProbeResult::Failure => 'F',
        });
        if changed {
            played.push('!');
        }
        if streak.is_held() {
            played.push('#');
        }
    }
    played
}

#[test]
fn so_many_equal_attempts_in_a_row_make_an_outcome() {
    let (unknown, success, failure) = (
        ProbeResult::Unknown,
        ProbeResult::Success,
        ProbeResult::Failure,
    );
    for (kind, initial, thresholds, attempts, outcomes) in [
        (Readiness, failure, (1, 3), "s", "S!"),
        (Readiness, failure, (3, 3), "sss", "FFS!"),
        (Readiness, failure, (3, 3), "ssfsss", "FFFFFS!"),
        (Readiness, success, (1, 3), "ffsffff", "SSSSSF!F"),
        (Readiness, success, (1, 1), "fsfs", "F!S!F!S!"),
        (Readiness, success, (1, 3), "sffs", "SSSS"),
        // What says nothing of the container neither counts nor resets the count.
        (Readiness, success, (1, 3), "fefellf", "SSSSSSF!"),
        (Readiness, failure, (2, 3), "sels", "FFFS!"),
        (Readiness, failure, (1, 3), "eeelll", "FFFFFF"),
        // Liveness counts as given until it is lost; then the container ends.
        (Liveness, success, (1, 3), "fff", "SSF!#"),
        (Liveness, success, (1, 1), "f", "F!#"),
        (Liveness, success, (1, 3), "ffsffsff", "SSSSSSSS"),
        (Liveness, success, (1, 2), "lflf", "SSSF!#"),
        // A startup probe decides once.
        (Startup, unknown, (1, 3), "s", "S!#"),
        (Startup, unknown, (1, 3), "ffs", "UUS!#"),
        (Startup, unknown, (1, 3), "fff", "UUF!#"),
        (Startup, unknown, (1, 30), "eelf", "UUUU"),
    ] {
        let played = play(kind, initial, thresholds, attempts);
        assert_eq!(played, outcomes, "{kind:?} {thresholds:?} {attempts}");
    }
}

#[test]
fn the_length_counts_attempts_that_say_something() {
    let probe = probe(1, 3);
    let mut streak = ProbeStreak::new(Liveness, ProbeResult::Success);
    let mut lengths = Vec::new();
    for attempt in [
        AttemptOutcome::Errored,
        AttemptOutcome::Success,
        AttemptOutcome::Success,
        AttemptOutcome::Failure,
        AttemptOutcome::Late,
        AttemptOutcome::Failure,
    ] {
        streak.note(attempt, &probe);
        lengths.push(streak.length());
    }
    assert_eq!(lengths, [0, 1, 2, 1, 1, 2]);
}
