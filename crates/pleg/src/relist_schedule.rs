//! The schedule of relists: every second without events, about once a minute with them, and soon
//! after an event may have been missed.

use std::time::Duration;

use tokio::time::Instant;

/// Time between two relists while events report changes.
const SLOW: Duration = Duration::from_secs(60);
/// Jitter of [`SLOW`] in percent, so that relists do not coincide with other work of each minute.
const JITTER_PERCENT: u32 = 10;
/// Times of the relists after a stream is opened. The runtime does not report when the subscription
/// takes effect, so the first relist may be too early.
const AFTER_CONNECT: [Duration; 3] = [
    Duration::ZERO,
    Duration::from_secs(1),
    Duration::from_secs(5),
];
/// Time between two relists after an event was missed, and how long this period lasts.
const FREQUENT: Duration = Duration::from_secs(1);
const FREQUENT_FOR: Duration = Duration::from_secs(60);
/// Delay of the relist for an unknown pod: more events of it are on their way.
const DEBOUNCE: Duration = Duration::from_millis(50);

/// Decides when the next relist is due. Reads no clock: the time is an argument.
#[derive(Debug)]
pub(super) struct RelistSchedule {
    /// Period while there are no events.
    polling: Duration,
    /// Whether events are relied on.
    events: bool,
    next: Instant,
    /// Relists still due after the stream was opened, soonest first.
    gap: Vec<Instant>,
    /// End of the time of frequent relists.
    frequent_until: Option<Instant>,
    /// Period after the frequent relists; it doubles up to [`SLOW`].
    period: Duration,
    /// Counter from which the jitter is derived.
    turn: u32,
}

impl RelistSchedule {
    /// A schedule without events, whose first relist is due now.
    pub(super) fn new(polling: Duration, now: Instant) -> Self {
        Self {
            polling,
            events: false,
            next: now,
            gap: Vec::new(),
            frequent_until: None,
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

    /// True if events are relied on and all relists after the opening of the stream are done: an
    /// event should have reported any change that a relist finds now.
    pub(super) fn is_gapless(&self) -> bool {
        self.events && self.gap.is_empty()
    }

    /// A stream of events was opened.
    pub(super) fn connected(&mut self, now: Instant) {
        self.events = true;
        self.gap = AFTER_CONNECT.iter().map(|after| now + *after).collect();
        self.next = now;
    }

    /// The stream ended, or its events are not relied on any more.
    pub(super) fn disconnected(&mut self, now: Instant) {
        if std::mem::take(&mut self.events) {
            self.gap.clear();
            self.next = self.next.min(now + self.polling);
        }
    }

    /// An event was missed, or may have been: relist now, and often for a while.
    pub(super) fn suspect(&mut self, now: Instant) {
        self.next = now;
        self.frequent_until = Some(now + FREQUENT_FOR);
        // Afterwards the period doubles from here, instead of jumping to a minute.
        self.period = FREQUENT;
    }

    /// An event named an unknown pod.
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
        } else if self.frequent_until.is_some_and(|until| now < until) {
            now + FREQUENT
        } else {
            self.frequent_until = None;
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
