//! Thresholds: from single attempts to an outcome (kubelet: `prober/worker.go`).

use rubelet_api::probe::Probe;

use super::{Outcome, ProbeKind};

/// How one attempt ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attempt {
    /// The container passed.
    Success,
    /// The container failed, or did not answer in time.
    Failure,
    /// The attempt could not be made: it says nothing of the container.
    Errored,
    /// The container failed in its first moments, before a period was over: it has
    /// `failureThreshold` whole periods.
    Early,
    /// The agent ran it so late that its failure says nothing of the container.
    Late,
}

/// Equal attempts in a row, and what they amount to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Streak {
    kind: ProbeKind,
    outcome: Outcome,
    last: Option<Attempt>,
    length: u32,
    held: bool,
}

impl Streak {
    /// The streak of a probe that was not tried yet.
    #[must_use]
    pub fn new(kind: ProbeKind, initial: Outcome) -> Self {
        Self {
            kind,
            outcome: initial,
            last: None,
            length: 0,
            held: false,
        }
    }

    /// What the attempts amount to.
    #[must_use]
    pub fn outcome(&self) -> Outcome {
        self.outcome
    }

    /// So many of the last attempts ended as the last one did.
    #[must_use]
    pub fn length(&self) -> u32 {
        self.length
    }

    /// True if this instance is not to be tried again: it failed its liveness probe for good, or
    /// its startup probe has decided.
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.held
    }

    /// Counts an attempt; true if the outcome is another one now. Attempts that say nothing of the
    /// container count neither way.
    pub fn note(&mut self, attempt: Attempt, probe: &Probe) -> bool {
        let (needed, outcome) = match attempt {
            Attempt::Success => (probe.success_threshold, Outcome::Success),
            Attempt::Failure => (probe.failure_threshold, Outcome::Failure),
            Attempt::Errored | Attempt::Early | Attempt::Late => return false,
        };
        if self.last == Some(attempt) {
            self.length = self.length.saturating_add(1);
        } else {
            self.last = Some(attempt);
            self.length = 1;
        }
        if self.length < needed {
            return false;
        }
        let changed = self.outcome != outcome;
        self.outcome = outcome;
        self.held = match self.kind {
            ProbeKind::Startup => true,
            ProbeKind::Liveness => outcome == Outcome::Failure,
            ProbeKind::Readiness => false,
        };
        changed
    }
}

#[cfg(test)]
mod tests {
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
    fn play(kind: ProbeKind, initial: Outcome, thresholds: (u32, u32), attempts: &str) -> String {
        let probe = probe(thresholds.0, thresholds.1);
        let mut streak = Streak::new(kind, initial);
        let mut played = String::new();
        for attempt in attempts.chars() {
            let changed = streak.note(
                match attempt {
                    's' => Attempt::Success,
                    'f' => Attempt::Failure,
                    'e' => Attempt::Errored,
                    _ => Attempt::Late,
                },
                &probe,
            );
            played.push(match streak.outcome() {
                Outcome::Unknown => 'U',
                Outcome::Success => 'S',
                Outcome::Failure => 'F',
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
        let (unknown, success, failure) = (Outcome::Unknown, Outcome::Success, Outcome::Failure);
        for (kind, initial, thresholds, attempts, outcomes) in [
            (Readiness, failure, (1, 3), "s", "S!"),
            (Readiness, failure, (3, 3), "sss", "FFS!"),
            (Readiness, failure, (3, 3), "ssfsss", "FFFFFS!"),
            (Readiness, success, (1, 3), "ffsffff", "SSSSSF!F"),
            (Readiness, success, (1, 1), "fsfs", "F!S!F!S!"),
            (Readiness, success, (1, 3), "sffs", "SSSS"),
            // What says nothing of the container neither counts nor starts the count anew.
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
        let mut streak = Streak::new(Liveness, Outcome::Success);
        let mut lengths = Vec::new();
        for attempt in [
            Attempt::Errored,
            Attempt::Success,
            Attempt::Success,
            Attempt::Failure,
            Attempt::Late,
            Attempt::Failure,
        ] {
            streak.note(attempt, &probe);
            lengths.push(streak.length());
        }
        assert_eq!(lengths, [0, 1, 2, 1, 1, 2]);
    }
}
