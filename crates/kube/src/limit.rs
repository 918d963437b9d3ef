//! The client's own rate limit: a token bucket. Time is an argument.

use std::time::Duration;

use tokio::time::Instant;

/// Allows `qps` requests a second, and `burst` at once after a quiet time. Requests are served in
/// the order of their calls.
#[derive(Debug)]
pub struct TokenBucket {
    /// Time between two requests in the long run; zero: no limit.
    every: Duration,
    /// Time that a full bucket is worth.
    depth: Duration,
    /// When the bucket would be full again. A reserved token moves it on.
    full_at: Option<Instant>,
}

impl TokenBucket {
    /// A full bucket. Zero or fewer requests a second mean that there is no limit; a burst below
    /// one counts as one.
    #[must_use]
    pub fn new(qps: f32, burst: u32) -> Self {
        let every = if qps > 0.0 && qps.is_finite() {
            Duration::try_from_secs_f32(1.0 / qps).unwrap_or(Duration::MAX)
        } else {
            Duration::ZERO
        };
        Self {
            every,
            depth: every.saturating_mul(burst.max(1)),
            full_at: None,
        }
    }

    /// Takes one token, and returns how long to wait before the request may be made. The token is
    /// spent, whether the caller waits or not.
    pub fn take(&mut self, now: Instant) -> Duration {
        if self.every.is_zero() {
            return Duration::ZERO;
        }
        let full_at = self.full_at.map_or(now, |full_at| full_at.max(now));
        // A delay beyond what the clock can hold is as good as the longest it can.
        let full_at = full_at.checked_add(self.every).unwrap_or(full_at);
        self.full_at = Some(full_at);
        (full_at - now).saturating_sub(self.depth)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_burst_is_free_and_the_rest_is_spaced() {
        let start = Instant::now();
        let mut bucket = TokenBucket::new(10.0, 3);
        let waits: Vec<u128> = (0..5).map(|_| bucket.take(start).as_millis()).collect();
        assert_eq!(waits, [0, 0, 0, 100, 200]);
        let later = start + Duration::from_millis(500);
        let waits: Vec<u128> = (0..4).map(|_| bucket.take(later).as_millis()).collect();
        assert_eq!(
            waits,
            [0, 0, 0, 100],
            "a full bucket never holds more than the burst"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn no_rate_means_no_limit() {
        for qps in [0.0, -1.0, f32::NAN] {
            let mut bucket = TokenBucket::new(qps, 0);
            assert!((0..1000).all(|_| bucket.take(Instant::now()).is_zero()));
        }
    }
}
