//! Times of relists: each second without events, rarely with them, and soon whenever something may
//! have been missed.

use std::time::Duration;

use tokio::time::Instant;

/// Time between two relists while events report changes.
const SLOW: Duration = Duration::from_secs(60);
/// Part of [`SLOW`] by which it varies, so that it keeps no step with other work of each minute.
const JITTER_PERCENT: u32 = 10;
/// Lists after a stream began. The first one may begin before the subscription took effect, and
/// nothing reports when it did.
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
    /// Lists that a stream's beginning requires, soonest first.
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

    /// Whether events are relied on and no gap is open: an event should have reported a change that
    /// a relist finds now.
    pub(super) fn is_gapless(&self) -> bool {
        self.events && self.gap.is_empty()
    }

    /// A stream of events began.
    pub(super) fn connected(&mut self, now: Instant) {
        self.events = true;
        self.gap = AFTER_CONNECT.iter().map(|after| now + *after).collect();
        self.next = now;
    }

    /// There are no events any more, or no reliable ones.
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
        // After the watchful time the period doubles from here, instead of jumping to a minute.
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
        // Only a list that began at a due time, or later, covers it.
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
mod tests;
