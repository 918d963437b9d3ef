//! Decides whether the other end of a connection still answers.

use std::time::Duration;

use rubelet_host::tcp_link::TcpSilence;

/// Silence after which an answer is late: the kernel's probe, sent after a second, has been answered by
/// then.
const LATE: Duration = Duration::from_millis(1250);

/// Time between two checks when an answer is late.
const RETRY: Duration = Duration::from_millis(250);

/// Time until the next check of a connection on which nothing waits for an answer, because the other end has
/// closed its window.
const QUIET: Duration = Duration::from_secs(1);

/// Silence after which a link is lost.
const LOST: Duration = Duration::from_secs(2);

/// Checks in a row without an answer, at least. After this machine was suspended, the silence is long, but no
/// answer could arrive.
const CHECKS: u32 = 4;

/// What to do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LinkVerdict {
    /// Check again after this time.
    Again(Duration),
    /// Send a probe, and check again after this time.
    Probe(Duration),
    /// The other end is gone.
    Lost,
}

/// The checks of one connection so far.
#[derive(Debug, Default)]
pub(super) struct LinkWatch {
    unanswered: u32,
    last: Duration,
}

impl LinkWatch {
    /// Judges one check.
    pub(super) fn judge(&mut self, seen: TcpSilence) -> LinkVerdict {
        let silence = seen.since_answer;
        let answered = silence < self.last;
        self.last = silence;
        if silence < LATE {
            self.unanswered = 0;
            return LinkVerdict::Again(LATE - silence);
        }
        if !seen.awaits_answer {
            self.unanswered = 0;
            return LinkVerdict::Again(QUIET);
        }
        self.unanswered = match answered {
            true => 1,
            false => self.unanswered + 1,
        };
        if silence >= LOST && self.unanswered >= CHECKS {
            return LinkVerdict::Lost;
        }
        LinkVerdict::Probe(RETRY)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(since_answer: u64, awaits_answer: bool) -> TcpSilence {
        TcpSilence {
            since_answer: Duration::from_millis(since_answer),
            awaits_answer,
        }
    }

    fn verdicts(checks: &[(u64, bool)]) -> Vec<LinkVerdict> {
        let mut watch = LinkWatch::default();
        let judge = |(silence, awaits): &(u64, bool)| watch.judge(seen(*silence, *awaits));
        checks.iter().map(judge).collect()
    }

    const PROBE: LinkVerdict = LinkVerdict::Probe(RETRY);

    fn again(after: u64) -> LinkVerdict {
        LinkVerdict::Again(Duration::from_millis(after))
    }

    #[test]
    fn an_answer_to_the_kernels_probe_is_checked_once_a_second() {
        let checks = [(0, false), (250, false), (240, false)];
        assert_eq!(verdicts(&checks), [again(1250), again(1000), again(1010)]);
    }

    #[test]
    fn a_link_without_an_answer_is_lost_after_two_seconds() {
        let checks = [
            (0, true),
            (1250, true),
            (1500, true),
            (1750, true),
            (2000, true),
        ];
        let expected = [again(1250), PROBE, PROBE, PROBE, LinkVerdict::Lost];
        assert_eq!(verdicts(&checks), expected);
    }

    #[test]
    fn one_lost_probe_ends_nothing() {
        let checks = [(1250, true), (1500, true), (100, false), (1250, true)];
        assert_eq!(verdicts(&checks), [PROBE, PROBE, again(1150), PROBE]);
    }

    #[test]
    fn a_client_that_reads_nothing_is_not_lost() {
        // It answers each probe of its closed window; the kernel sends them more and more rarely.
        let checks = [
            (60_000, false),
            (61_000, true),
            (61_250, false),
            (90_000, true),
        ];
        assert_eq!(verdicts(&checks), [again(1000), PROBE, again(1000), PROBE]);
    }

    #[test]
    fn a_machine_that_was_suspended_gives_the_link_time() {
        let checks = [
            (3_600_000, true),
            (3_600_250, true),
            (3_600_500, true),
            (10, false),
        ];
        assert_eq!(verdicts(&checks), [PROBE, PROBE, PROBE, again(1240)]);
    }
}
