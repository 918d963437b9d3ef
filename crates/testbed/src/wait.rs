//! Waiting for a condition, never for a length of time.

use std::time::Duration;

use anyhow::{Result, bail};

use crate::clock;

/// Time between two looks at a condition that nothing announces.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Looks at `probe` until it gives a value and returns that value.
///
/// # Errors
/// When `probe` fails, or has given no value within `timeout`; the message names `what`.
pub fn until<T>(
    what: &str,
    timeout: Duration,
    probe: impl FnMut() -> Result<Option<T>>,
) -> Result<T> {
    until_every(LOOK_EVERY, what, timeout, probe)
}

/// The same as [`until`] with that long a pause between two looks, for looks that cost something.
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
            bail!("waited {timeout:?} in vain until {what}");
        }
        #[expect(clippy::disallowed_methods, reason = "the pause between two looks")]
        std::thread::sleep(pause);
    }
}

/// Lets time pass, for measurements over a span of time.
pub fn pass(span: Duration) {
    #[expect(
        clippy::disallowed_methods,
        reason = "what is measured is what happens meanwhile"
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
        assert_eq!(error.to_string(), "waited 0ns in vain until pigs fly");
    }
}
