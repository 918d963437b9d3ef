//! Exponential back-off as data: no clock, no timer.

use std::time::Duration;

/// A delay that doubles from `initial` up to `max`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    initial: Duration,
    max: Duration,
    current: Option<Duration>,
}

impl Backoff {
    /// A fresh back-off.
    #[must_use]
    pub const fn new(initial: Duration, max: Duration) -> Self {
        Self {
            initial,
            max,
            current: None,
        }
    }

    /// The delay to use now; the one after it is twice as long, up to the maximum.
    pub fn advance(&mut self) -> Duration {
        let next = match self.current {
            None => self.initial.min(self.max),
            Some(delay) => delay.saturating_mul(2).min(self.max),
        };
        self.current = Some(next);
        next
    }

    /// Starts again from the initial delay.
    pub fn reset(&mut self) {
        self.current = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_up_to_the_maximum_and_resets() {
        let mut backoff = Backoff::new(Duration::from_millis(100), Duration::from_millis(350));
        let delays: Vec<u128> = (0..4).map(|_| backoff.advance().as_millis()).collect();
        assert_eq!(delays, [100, 200, 350, 350]);
        backoff.reset();
        assert_eq!(backoff.advance().as_millis(), 100);
    }
}
