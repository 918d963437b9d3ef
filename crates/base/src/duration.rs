//! Durations in Go's notation (`1h30m`, `300ms`, `1.5s`), the form of every Kubernetes option.
//!
//! Source of the rule: the documentation of Go's `time.ParseDuration` and `Duration.String`.

use std::time::Duration;

/// Why a text is not a duration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseDurationError {
    /// The text is empty.
    #[error("empty duration; write a number with a unit, such as 10s")]
    Empty,
    /// Negative durations have no meaning in any option.
    #[error("negative duration {0:?}")]
    Negative(String),
    /// A number without one of the units `ns`, `us`, `ms`, `s`, `m` or `h`.
    #[error("missing or unknown unit in duration {0:?}; units are ns, us, ms, s, m, h")]
    Unit(String),
    /// Something that is not a decimal number.
    #[error("invalid number in duration {0:?}")]
    Number(String),
    /// More than 2^63 nanoseconds, about 292 years.
    #[error("duration {0:?} is too long")]
    TooLong(String),
}

/// Parses Go's notation. `0` needs no unit.
///
/// # Errors
/// The text is empty, negative, has no unit, a bad number, or overflows.
pub fn parse_go(text: &str) -> Result<Duration, ParseDurationError> {
    let own = || text.to_owned();
    let unsigned = text.strip_prefix('+').unwrap_or(text);
    if unsigned.is_empty() {
        return Err(ParseDurationError::Empty);
    }
    if unsigned.starts_with('-') {
        return Err(ParseDurationError::Negative(own()));
    }
    if unsigned == "0" {
        return Ok(Duration::ZERO);
    }
    let mut total: u128 = 0;
    let mut rest = unsigned;
    while !rest.is_empty() {
        let number_end = rest
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .ok_or_else(|| ParseDurationError::Unit(own()))?;
        let (number, after) = rest.split_at(number_end);
        let unit_end = after
            .find(|c: char| c.is_ascii_digit() || c == '.')
            .unwrap_or(after.len());
        let (unit, next) = after.split_at(unit_end);
        let unit_ns = unit_nanos(unit).ok_or_else(|| ParseDurationError::Unit(own()))?;
        total = nanos(number, unit_ns)
            .ok_or_else(|| ParseDurationError::Number(own()))?
            .checked_add(total)
            .ok_or_else(|| ParseDurationError::TooLong(own()))?;
        rest = next;
    }
    let total = i64::try_from(total).map_err(|_| ParseDurationError::TooLong(own()))?;
    Ok(Duration::from_nanos(total.unsigned_abs()))
}

fn unit_nanos(unit: &str) -> Option<u128> {
    Some(match unit {
        "ns" => 1,
        "us" | "µs" | "μs" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _ => return None,
    })
}

fn nanos(number: &str, unit: u128) -> Option<u128> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let mut total = match whole {
        "" => 0,
        digits => digits.parse::<u128>().ok()?.checked_mul(unit)?,
    };
    let mut place = unit;
    for digit in fraction.chars() {
        place /= 10;
        total = total.checked_add(u128::from(digit.to_digit(10)?).checked_mul(place)?)?;
    }
    Some(total)
}

/// Writes Go's notation: `1h0m0s`, `1m30s`, `1.5s`, `300ms`, `0s`.
#[must_use]
pub fn format_go(duration: Duration) -> String {
    let nanos = duration.as_nanos();
    if nanos == 0 {
        return "0s".to_owned();
    }
    if nanos < 1_000_000_000 {
        let (unit, scale) = match nanos {
            0..1_000 => ("ns", 1),
            1_000..1_000_000 => ("µs", 1_000),
            _ => ("ms", 1_000_000),
        };
        return format!("{}{unit}", decimal(nanos, scale));
    }
    let (hours, minutes) = (nanos / 3_600_000_000_000, nanos / 60_000_000_000 % 60);
    let seconds = decimal(nanos % 60_000_000_000, 1_000_000_000);
    match (hours, minutes) {
        (0, 0) => format!("{seconds}s"),
        (0, m) => format!("{m}m{seconds}s"),
        (h, m) => format!("{h}h{m}m{seconds}s"),
    }
}

fn decimal(value: u128, scale: u128) -> String {
    let (whole, rest) = (value / scale, value % scale);
    if rest == 0 {
        return whole.to_string();
    }
    let width = scale.ilog10() as usize;
    let digits = format!("{rest:0width$}");
    format!("{whole}.{}", digits.trim_end_matches('0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_go_reads() {
        for (text, nanos) in [
            ("0", 0),
            ("10s", 10_000_000_000),
            ("1h30m", 5_400_000_000_000),
            ("300ms", 300_000_000),
            ("1.5h", 5_400_000_000_000),
            (".5s", 500_000_000),
            ("2m3.25s", 123_250_000_000),
            ("1us", 1_000),
        ] {
            assert_eq!(parse_go(text), Ok(Duration::from_nanos(nanos)), "{text}");
        }
    }

    #[test]
    fn refuses_what_go_refuses() {
        for text in ["", "10", "s", "-1s", "1x", "1.2.3s", ".s", "999999999h"] {
            assert!(parse_go(text).is_err(), "{text}");
        }
    }

    #[test]
    fn writes_what_go_writes() {
        for (nanos, text) in [
            (0, "0s"),
            (1_500_000_000, "1.5s"),
            (300_000_000, "300ms"),
            (60_000_000_000, "1m0s"),
            (3_600_000_000_000, "1h0m0s"),
            (1_500, "1.5µs"),
        ] {
            assert_eq!(format_go(Duration::from_nanos(nanos)), text);
        }
    }
}
