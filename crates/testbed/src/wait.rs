//! Waits for conditions, never for a fixed time.

use std::{ops::RangeInclusive, sync::LazyLock, time::Duration};

use anyhow::{Result, bail};

use crate::clock;

/// Poll intervals of a condition without notifications. What has lasted long may last a little longer: a test
/// that polls takes processor time from those beside it, and from what it waits for.
const POLL_INTERVALS: RangeInclusive<Duration> =
    Duration::from_millis(20)..=Duration::from_millis(250);
/// The part of the time so far that passes until the next poll.
const PART: u32 = 16;

/// The environment variable with a number by which each wait for a condition is multiplied, for slow machines.
pub const PATIENCE: &str = "RUBELET_TEST_PATIENCE";

/// How long to wait for a condition instead of this time, on a machine of this speed.
#[must_use]
pub fn patiently(timeout: Duration) -> Duration {
    static FACTOR: LazyLock<u32> = LazyLock::new(|| {
        let text = std::env::var(PATIENCE).unwrap_or_else(|_| "1".to_owned());
        let number = text.parse();
        number.unwrap_or_else(|_| panic!("{PATIENCE} is `{text}`, not a whole number"))
    });
    timeout * *FACTOR
}

/// Polls `probe` until it returns a value, less often the longer it takes.
///
/// # Errors
/// `probe` fails, or has returned no value within `timeout`; the message names `what`.
pub fn until<T>(
    what: &str,
    timeout: Duration,
    probe: impl FnMut() -> Result<Option<T>>,
) -> Result<T> {
    poll(pause_after, what, timeout, probe)
}

fn pause_after(elapsed: Duration) -> Duration {
    (elapsed / PART).clamp(*POLL_INTERVALS.start(), *POLL_INTERVALS.end())
}

/// Like [`until`] with a given interval, for expensive probes and for measurements.
///
/// # Errors
/// As [`until`].
pub fn until_every<T>(
    pause: Duration,
    what: &str,
    timeout: Duration,
    probe: impl FnMut() -> Result<Option<T>>,
) -> Result<T> {
    poll(|_| pause, what, timeout, probe)
}

fn poll<T>(
    pause: impl Fn(Duration) -> Duration,
    what: &str,
    timeout: Duration,
    mut probe: impl FnMut() -> Result<Option<T>>,
) -> Result<T> {
    let start = clock::now();
    let timeout = patiently(timeout);
    loop {
        if let Some(value) = probe()? {
            return Ok(value);
        }
        let elapsed = start.elapsed();
        if elapsed >= timeout {
            bail!("timed out after {timeout:?} waiting until {what}");
        }
        #[expect(clippy::disallowed_methods, reason = "the pause between two polls")]
        std::thread::sleep(pause(elapsed));
    }
}

/// Sleeps, for measurements over a span of time.
pub fn pass(span: Duration) {
    #[expect(
        clippy::disallowed_methods,
        reason = "the measurement covers this time"
    )]
    std::thread::sleep(span);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_that_becomes_true_ends_the_wait_with_its_value() {
        let mut looks = 0;
        let value = until("three looks", Duration::from_secs(5), || {
            looks += 1;
            Ok((looks == 3).then_some(looks))
        });
        assert_eq!(value.unwrap(), 3);
    }

    #[test]
    fn polls_become_rarer_with_time_up_to_a_limit() {
        for (elapsed_ms, pause_ms) in [(0, 20), (320, 20), (1600, 100), (60_000, 250)] {
            let pause = pause_after(Duration::from_millis(elapsed_ms));
            assert_eq!(pause, Duration::from_millis(pause_ms), "{elapsed_ms}");
        }
    }

    #[test]
    fn a_condition_that_stays_false_is_named_in_the_error() {
        let error = until::<()>("pigs fly", Duration::ZERO, || Ok(None)).unwrap_err();
        assert_eq!(
            error.to_string(),
            "timed out after 0ns waiting until pigs fly"
        );
    }
}
