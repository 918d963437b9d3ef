//! When to relist: each second without events, rarely with them, and soon whenever something may
//! have been missed.

use std::time::Duration;

use tokio::time::Instant;

/// Time between two relists while events tell what happens.
const SLOW: Duration = Duration::from_secs(60);
/// Part of [`SLOW`] by which it varies, so that it keeps no step with other work of each minute.
const JITTER_PERCENT: u32 = 10;
/// Lists after a stream began. The first one may begin before the subscription took effect, and
/// nothing tells when it did.
const AFTER_CONNECT: [Duration; 3] = [
    Duration::ZERO,
    Duration::from_secs(1),
    Duration::from_secs(5),
];
/// Time between two relists after something was missed, and for how long.
const WATCHFUL: Duration = Duration::from_secs(1);
const WATCHFUL_FOR: Duration = Duration::from_secs(60);
/// Wait before a relist for a pod that nobody knows: more events of it are on their way.
const DEBOUNCE: Duration = Duration::from_millis(50);

/// The times of relists. Time is an argument, so that there is nothing to wait for in its tests.
#[derive(Debug)]
pub(super) struct Cadence {
    /// Period without events.
    polling: Duration,
    /// Whether events are relied on.
    events: bool,
    next: Instant,
    /// Lists that a stream's beginning asks for, soonest first.
    gap: Vec<Instant>,
    /// Until then the lists are frequent.
    watchful_until: Option<Instant>,
    /// Period after the watchful time; it doubles up to [`SLOW`].
    period: Duration,
    /// Varies the slow period.
    turn: u32,
}

impl Cadence {
    /// Without events, beginning now.
    pub(super) fn new(polling: Duration, now: Instant) -> Self {
        Self {
            polling,
            events: false,
            next: now,
            gap: Vec::new(),
            watchful_until: None,
            period: SLOW,
            turn: 0,
        }
    }

    /// When the next relist is due.
    pub(super) fn next(&self) -> Instant {
        self.next
    }

    /// Whether events are relied on.
    pub(super) fn relies_on_events(&self) -> bool {
        self.events
    }

    /// Whether events are relied on and no gap is open: a change that a relist finds now should
    /// have been told.
    pub(super) fn is_gapless(&self) -> bool {
        self.events && self.gap.is_empty()
    }

    /// A stream of events began.
    pub(super) fn connected(&mut self, now: Instant) {
        self.events = true;
        self.gap = AFTER_CONNECT.iter().map(|after| now + *after).collect();
        self.next = now;
    }

    /// There are no events any more, or none that can be relied on.
    pub(super) fn disconnected(&mut self, now: Instant) {
        if std::mem::take(&mut self.events) {
            self.gap.clear();
            self.next = self.next.min(now + self.polling);
        }
    }

    /// Something was missed, or may have been: list now, and often for a while.
    pub(super) fn suspect(&mut self, now: Instant) {
        self.next = now;
        self.watchful_until = Some(now + WATCHFUL_FOR);
        self.period = WATCHFUL;
    }

    /// An event named a pod that nobody knows.
    pub(super) fn unknown_pod(&mut self, now: Instant) {
        self.next = self.next.min(now + DEBOUNCE);
    }

    /// The runtime is back.
    pub(super) fn at_once(&mut self, now: Instant) {
        self.next = now;
    }

    /// A relist that began at `began` has succeeded.
    pub(super) fn listed(&mut self, began: Instant, now: Instant) {
        self.gap.retain(|at| *at > began);
        let regular = if !self.events {
            now + self.polling
        } else if self.watchful_until.is_some_and(|until| now < until) {
            now + WATCHFUL
        } else {
            self.watchful_until = None;
            let period = self.period;
            self.period = period.saturating_mul(2).min(SLOW);
            now + if period == SLOW {
                self.varied()
            } else {
                period
            }
        };
        self.next = self.gap.iter().copied().fold(regular, Instant::min);
    }

    /// A relist failed: try again after `wait`.
    pub(super) fn failed(&mut self, now: Instant, wait: Duration) {
        self.next = now + wait;
    }

    /// [`SLOW`], give or take [`JITTER_PERCENT`].
    fn varied(&mut self) -> Duration {
        // A step that shares no divisor with the range visits all of it.
        self.turn = self.turn.wrapping_add(8);
        let percent = 100 - JITTER_PERCENT + self.turn % (2 * JITTER_PERCENT + 1);
        SLOW * percent / 100
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// The next relists, in seconds from `start`; each takes no time.
    fn times(cadence: &mut Cadence, start: Instant, count: usize) -> Vec<f64> {
        let one = |_| {
            let at = cadence.next();
            cadence.listed(at, at);
            at.duration_since(start).as_secs_f64()
        };
        (0..count).map(one).collect()
    }

    #[test]
    fn without_events_each_period() {
        let start = Instant::now();
        let mut cadence = Cadence::new(SECOND, start);
        assert_eq!(times(&mut cadence, start, 3), [0.0, 1.0, 2.0]);
    }

    #[test]
    fn with_events_thrice_after_the_connect_and_then_about_each_minute() {
        let start = Instant::now();
        let mut cadence = Cadence::new(SECOND, start);
        cadence.connected(start);
        let times = times(&mut cadence, start, 30);
        assert_eq!(times[..3], [0.0, 1.0, 5.0]);
        let periods = times[2..].windows(2).map(|two| (two[1] - two[0]).round());
        let periods: Vec<f64> = periods.collect();
        assert!(periods.iter().all(|period| (54.0..=66.0).contains(period)));
        let varied: BTreeSet<i64> = periods.iter().map(|period| *period as i64).collect();
        assert!(varied.len() > 10, "they vary: {varied:?}");
    }

    #[test]
    fn what_was_missed_makes_it_watchful_for_a_minute_and_then_less_and_less() {
        let start = Instant::now();
        let mut cadence = Cadence::new(SECOND, start);
        cadence.connected(start);
        times(&mut cadence, start, 4);
        let now = cadence.next() - SECOND;
        cadence.suspect(now);
        let times = times(&mut cadence, now, 68);
        assert_eq!(times[0], 0.0);
        assert!(times[..61].windows(2).all(|two| two[1] - two[0] == 1.0));
        let later: Vec<f64> = times[60..67]
            .windows(2)
            .map(|two| two[1] - two[0])
            .collect();
        assert_eq!(later, [1.0, 2.0, 4.0, 8.0, 16.0, 32.0]);
    }

    #[test]
    fn a_lost_stream_means_polling_at_once() {
        let start = Instant::now();
        let mut cadence = Cadence::new(SECOND, start);
        cadence.connected(start);
        times(&mut cadence, start, 4);
        let lost = start + Duration::from_secs(10);
        cadence.disconnected(lost);
        assert_eq!(times(&mut cadence, lost, 3), [1.0, 2.0, 3.0]);
        assert!(!cadence.is_gapless());
    }

    #[test]
    fn events_of_unknown_pods_share_one_relist() {
        let start = Instant::now();
        let mut cadence = Cadence::new(SECOND, start);
        cadence.connected(start);
        times(&mut cadence, start, 3);
        let now = start + Duration::from_secs(20);
        for late in 0..40 {
            cadence.unknown_pod(now + Duration::from_millis(late));
        }
        assert_eq!(cadence.next(), now + DEBOUNCE);
    }
}
