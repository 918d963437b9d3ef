//! How often the watch of the pods is opened again.

use std::time::Duration;

use rubelet_base::Backoff;
use tokio::time::Instant;

/// The pause after the watch was opened again: an API server whose watches are merely late must not
/// have to open them all the time. It doubles, and starts again after a long time without need.
#[derive(Debug)]
pub(super) struct ReopenPause {
    backoff: Backoff,
    max: Duration,
    until: Option<Instant>,
}

impl ReopenPause {
    pub(super) fn new(initial: Duration, max: Duration) -> Self {
        Self {
            backoff: Backoff::new(initial, max),
            max,
            until: None,
        }
    }

    /// Whether the watch may be opened again now; if so, the next pause begins.
    pub(super) fn is_over(&mut self, now: Instant) -> bool {
        if let Some(until) = self.until {
            if now < until {
                return false;
            }
            if now >= until + self.max {
                self.backoff.reset();
            }
        }
        self.until = Some(now + self.backoff.advance());
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The seconds at which the watch is opened again, if that is asked for in each of these.
    fn reopened(asked: impl IntoIterator<Item = u64>) -> Vec<u64> {
        let start = Instant::now();
        let mut pause = ReopenPause::new(Duration::from_secs(30), Duration::from_secs(600));
        let asked = asked.into_iter();
        asked
            .filter(|second| pause.is_over(start + Duration::from_secs(*second)))
            .collect()
    }

    #[test]
    fn a_watch_that_is_always_late_is_opened_again_less_and_less_often() {
        assert_eq!(
            reopened(0..3000),
            [0, 30, 90, 210, 450, 930, 1530, 2130, 2730]
        );
    }

    #[test]
    fn after_a_long_time_without_need_the_pause_is_short_again() {
        assert_eq!(reopened((0..200).chain([700, 729, 730])), [0, 30, 90, 700]);
        assert_eq!(
            reopened((0..200).chain([810, 839, 840])),
            [0, 30, 90, 810, 840]
        );
    }
}
