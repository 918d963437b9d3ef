//! The rate limit of image pulls: `registryPullQPS` and `registryBurst`.
//!
//! Source of the rule: `throttledImageService` in `pkg/kubelet/images/helpers.go` of Kubernetes 1.36.

use std::time::Duration;

use parking_lot::Mutex;
use rubelet_cri::CriError;
use tokio::time::Instant;

/// Why a pull failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PullError {
    /// In the kubelet's words.
    #[error("pull QPS exceeded")]
    RateExceeded,
    /// The runtime's error.
    #[error(transparent)]
    Runtime(#[from] CriError),
}

impl PullError {
    /// The runtime's message.
    pub(crate) fn message(&self) -> &str {
        match self {
            Self::RateExceeded => "",
            Self::Runtime(error) => &error.message,
        }
    }
}

/// A token bucket: pulls beyond it are refused, and do not wait.
#[derive(Debug)]
pub struct PullRate {
    /// Time between two pulls in the long run; zero: no limit.
    every: Duration,
    /// Time in which an empty bucket fills.
    depth: Duration,
    /// When the bucket is full again.
    full_at: Mutex<Option<Instant>>,
}

impl PullRate {
    /// Allows `per_second` pulls a second, and `burst` at once after a quiet time. Zero pulls a second
    /// mean that there is no limit; a burst below one counts as one.
    #[must_use]
    pub fn new(per_second: u32, burst: u32) -> Self {
        let every = Duration::from_secs(1)
            .checked_div(per_second)
            .unwrap_or_default();
        Self {
            every,
            depth: every.saturating_mul(burst.max(1)),
            full_at: Mutex::default(),
        }
    }

    /// No limit.
    #[must_use]
    pub fn unlimited() -> Self {
        Self::new(0, 0)
    }

    /// Takes a token. Returns false if there is none.
    pub(crate) fn take(&self, now: Instant) -> bool {
        let mut full_at = self.full_at.lock();
        let next = full_at.map_or(now, |at| at.max(now)) + self.every;
        if next - now > self.depth {
            return false;
        }
        *full_at = Some(next);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pulls_beyond_the_burst_are_refused_until_there_is_a_token() {
        let start = Instant::now();
        let allowed = |rate: &PullRate, millis: u64, count: usize| {
            let now = start + Duration::from_millis(millis);
            (0..count).filter(|_| rate.take(now)).count()
        };
        let rate = PullRate::new(5, 3);
        for (millis, asked, expected) in [
            (0, 10, 3),
            (199, 5, 0),
            (200, 5, 1),
            (1000, 5, 3),
            (100_000, 9, 3),
        ] {
            assert_eq!(allowed(&rate, millis, asked), expected, "{millis}");
        }
        assert_eq!(allowed(&PullRate::unlimited(), 0, 1000), 1000);
        assert_eq!(allowed(&PullRate::new(5, 0), 0, 10), 1);
    }
}
