//! Ages as kubectl prints them: `45s`, `3m20s`, `5h`, `12d`. Source of the steps: apimachinery's
//! `duration.HumanDuration`.

use jiff::Timestamp;

/// Format of durations up to a bound in seconds: the unit, and the unit of the remainder.
const STEPS: &[(i128, Unit, Option<Unit>)] = &[
    (2 * 60, SECOND, None),
    (10 * 60, MINUTE, Some(SECOND)),
    (3 * 3600, MINUTE, None),
    (8 * 3600, HOUR, Some(MINUTE)),
    (2 * 86_400, HOUR, None),
    (8 * 86_400, DAY, Some(HOUR)),
    (2 * 365 * 86_400, DAY, None),
    (8 * 365 * 86_400, YEAR, Some(DAY)),
    (i128::MAX, YEAR, None),
];

type Unit = (i128, char);

const SECOND: Unit = (1, 's');
const MINUTE: Unit = (60, 'm');
const HOUR: Unit = (3600, 'h');
const DAY: Unit = (86_400, 'd');
const YEAR: Unit = (365 * 86_400, 'y');

/// Time since then.
pub(super) fn since(then: Option<Timestamp>, now: Timestamp) -> String {
    match then {
        None => "<unknown>".to_owned(),
        Some(then) => human(now.duration_since(then).as_millis()),
    }
}

/// Formats a duration in milliseconds.
pub(super) fn human(millis: i128) -> String {
    let seconds = millis / 1000;
    // Tolerates clock skew.
    if seconds < -1 {
        return "<invalid>".to_owned();
    }
    let seconds = seconds.max(0);
    let mut steps = STEPS.iter();
    let step = steps.find(|(bound, ..)| seconds < *bound);
    let (_, (large, name), rest) = step.expect("the last bound is above all");
    let mut text = format!("{}{name}", seconds / large);
    if let Some((small, name)) = rest {
        let rest = seconds % large / small;
        if rest > 0 {
            text += &format!("{rest}{name}");
        }
    }
    text
}
