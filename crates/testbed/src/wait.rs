//! Waits for conditions, never for a fixed time.

use std::time::Duration;

use anyhow::{Result, bail};

use crate::clock;

/// Poll interval of a condition without notifications.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Polls `probe` until it returns a value.
///
/// # Errors
/// `probe` fails, or has returned no value within `timeout`; the message names `what`.
pub fn until<T>(
    what: &str,
    timeout: Duration,
    probe: impl FnMut() -> Result<Option<T>>,
) -> Result<T> {
    until_every(POLL_INTERVAL, what, timeout, probe)
}

/// Like [`until`] with a given interval, for expensive probes.
///
/// # Errors
/// As [`until`].
pub fn until_every<T>(
    pause: Duration,
    what: &str,
    timeout: Duration,
    mut probe: impl FnMut() -> Result<Option<T>>,
) -> Result<T> {
    let deadline = clock::now() + timeout;
    loop {
        if let Some(value) = probe()? {
            return Ok(value);
        }
        if clock::now() >= deadline {
            bail!("timed out after {timeout:?} waiting until {what}");
        }
        #[expect(clippy::disallowed_methods, reason = "the pause between two polls")]
        std::thread::sleep(pause);
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
    fn a_condition_that_stays_false_is_named_in_the_error() {
        let error = until::<()>("pigs fly", Duration::ZERO, || Ok(None)).unwrap_err();
        assert_eq!(
            error.to_string(),
            "timed out after 0ns waiting until pigs fly"
        );
    }
}
