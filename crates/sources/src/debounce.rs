//! Debounces events: a burst causes one scan, after a short quiet time but with a limited delay.

use tokio::time::{Duration, Instant};

/// Quiet time before a scan.
const QUIET: Duration = Duration::from_millis(50);

/// Maximum delay after the first event.
const BOUND: Duration = Duration::from_millis(500);

/// The time of the next scan.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Debounce {
    burst: Option<(Instant, Instant)>,
}

impl Debounce {
    /// Records an event.
    pub(crate) fn event(&mut self, now: Instant) {
        let first = self.burst.map_or(now, |(first, _)| first);
        self.burst = Some((first, now));
    }

    /// The time of the next scan; `None` without events since the last one.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.burst
            .map(|(first, last)| (last + QUIET).min(first + BOUND))
    }

    /// Resets after a scan.
    pub(crate) fn reset(&mut self) {
        self.burst = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_burst_is_waited_for_but_not_for_ever() {
        let start = Instant::now();
        let at = |millis| start + Duration::from_millis(millis);
        let mut debounce = Debounce::default();
        assert_eq!(debounce.due(), None);
        debounce.event(at(0));
        assert_eq!(debounce.due(), Some(at(50)));
        debounce.event(at(40));
        assert_eq!(debounce.due(), Some(at(90)));
        for millis in (80..=480).step_by(40) {
            debounce.event(at(millis));
        }
        assert_eq!(debounce.due(), Some(at(500)));
        debounce.reset();
        assert_eq!(debounce.due(), None);
        debounce.event(at(700));
        assert_eq!(debounce.due(), Some(at(750)));
    }
}
