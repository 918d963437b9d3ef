//! Ages in two or three significant figures: `45s`, `3m20s`, `5h`, `12d`.
//!
//! Source of the steps: apimachinery's `duration.HumanDuration`.

use jiff::Timestamp;

/// The time since `then`; `<unknown>` without a time.
#[must_use]
pub fn since(then: Option<Timestamp>, now: Timestamp) -> String {
    then.map_or_else(
        || "<unknown>".to_owned(),
        |then| human(now.duration_since(then).as_millis()),
    )
}

/// A duration in milliseconds. Up to 2 s in the future count as now, since clocks differ; more than
/// that is `<invalid>`.
#[must_use]
pub fn human(millis: i128) -> String {
    const MINUTE: i128 = 60;
    const HOUR: i128 = 60 * MINUTE;
    const DAY: i128 = 24 * HOUR;
    const YEAR: i128 = 365 * DAY;

    let seconds = millis / 1000;
    match seconds {
        ..=-2 => "<invalid>".to_owned(),
        -1 => "0s".to_owned(),
        0..120 => format!("{seconds}s"),
        120..600 => two(seconds, (MINUTE, 'm'), (1, 's')),
        600..10_800 => format!("{}m", seconds / MINUTE),
        10_800..28_800 => two(seconds, (HOUR, 'h'), (MINUTE, 'm')),
        28_800..172_800 => format!("{}h", seconds / HOUR),
        172_800..691_200 => two(seconds, (DAY, 'd'), (HOUR, 'h')),
        _ if seconds < 2 * YEAR => format!("{}d", seconds / DAY),
        _ if seconds < 8 * YEAR => two(seconds, (YEAR, 'y'), (DAY, 'd')),
        _ => format!("{}y", seconds / YEAR),
    }
}

/// The whole part in the large unit and the remainder in the small one, unless that is 0.
fn two(
    seconds: i128,
    (large, large_name): (i128, char),
    (small, small_name): (i128, char),
) -> String {
    let rest = seconds % large / small;
    let mut text = format!("{}{large_name}", seconds / large);
    if rest != 0 {
        text.push_str(&format!("{rest}{small_name}"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_read_as_kubectl_prints_them() {
        const DAY: i128 = 86_400;
        for (seconds, text) in [
            (-2, "<invalid>"),
            (-1, "0s"),
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (125, "2m5s"),
            (599, "9m59s"),
            (600, "10m"),
            (10_799, "179m"),
            (10_800, "3h"),
            (10_860, "3h1m"),
            (28_800, "8h"),
            (172_799, "47h"),
            (2 * DAY, "2d"),
            (2 * DAY + 3_600, "2d1h"),
            (8 * DAY + 3_600, "8d"),
            (729 * DAY, "729d"),
            (730 * DAY, "2y"),
            (731 * DAY, "2y1d"),
            (2920 * DAY, "8y"),
        ] {
            assert_eq!(human(seconds * 1000), text, "{seconds}");
        }
    }

    #[test]
    fn a_time_that_is_missing_is_unknown() {
        assert_eq!(since(None, Timestamp::UNIX_EPOCH), "<unknown>");
    }
}
