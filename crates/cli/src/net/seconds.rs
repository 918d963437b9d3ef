//! Seconds on a command line: `5`, `0.2`.

use std::time::Duration;

use anyhow::{Context as _, ensure};

/// The longest time that is accepted: a year.
const MOST: f64 = 365.0 * 86_400.0;

/// Reads a number of seconds with a fraction.
pub(super) fn seconds(text: &str) -> anyhow::Result<Duration> {
    let number: f64 = text
        .parse()
        .ok()
        .context("give a number of seconds, such as 5 or 0.2")?;
    ensure!(
        (0.0..=MOST).contains(&number),
        "give a number of seconds from 0 to {MOST}"
    );
    Ok(Duration::from_secs_f64(number))
}

/// Reads a number of seconds that is not 0.
pub(super) fn some_seconds(text: &str) -> anyhow::Result<Duration> {
    let time = seconds(text)?;
    ensure!(!time.is_zero(), "give more than 0 seconds");
    Ok(time)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_of_seconds_is_finite_and_not_negative() {
        assert_eq!(seconds("0.25").unwrap(), Duration::from_millis(250));
        assert_eq!(seconds("0").unwrap(), Duration::ZERO);
        for text in ["", "x", "-1", "nan", "inf", "1e300"] {
            assert!(seconds(text).is_err(), "{text}");
        }
        assert!(some_seconds("0").is_err());
    }
}
