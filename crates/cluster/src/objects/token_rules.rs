//! Decides when to refresh a service account token. Pure: `now` is an argument.
//!
//! Source of the rule: `pkg/kubelet/token`: a token is replaced when it is older than 24 hours or
//! has less than a fifth of its life left, each up to 10 s earlier.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

/// No token is used for longer.
const MAX_AGE: Duration = Duration::from_secs(24 * 3600);
/// The moments of many tokens are spread over this time.
const JITTER: Duration = Duration::from_secs(10);

/// The time at which a token must be refreshed. `lifetime` is what the API server granted;
/// without it the token is used until it expires. `spread` varies the moment.
pub(super) fn refresh_at(
    expires_at: Timestamp,
    lifetime: Option<Duration>,
    spread: u64,
) -> Timestamp {
    let Some(lifetime) = lifetime else {
        return expires_at;
    };
    let jitter = JITTER.mul_f64((spread % 1000) as f64 / 1000.0);
    let by_age = after(before(expires_at, lifetime), MAX_AGE);
    let by_rest = before(expires_at, lifetime / 5);
    before(by_age.min(by_rest), jitter)
}

/// The expiry of a token by this node's clock, from which the API server's may differ. The token
/// was requested at `asked`, so it lasts from then on for its `lifetime` at most, and the API
/// server's time counts within that; and it is replaced after half of its life at the earliest, so
/// that one that seems to have expired is not requested over and over.
pub(super) fn by_own_clock(
    expires_at: Timestamp,
    lifetime: Option<Duration>,
    asked: Timestamp,
) -> Timestamp {
    let Some(lifetime) = lifetime else {
        return expires_at;
    };
    // A fifth of the life before its end, `refresh_at` is at the half.
    let earliest = after(asked, lifetime.mul_f64(0.7));
    expires_at.clamp(earliest, after(asked, lifetime))
}

/// A number of the text, the same in each run.
pub(super) fn spread_of(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

fn before(at: Timestamp, by: Duration) -> Timestamp {
    SignedDuration::try_from(by)
        .ok()
        .and_then(|by| at.checked_sub(by).ok())
        .unwrap_or(Timestamp::MIN)
}

fn after(at: Timestamp, by: Duration) -> Timestamp {
    SignedDuration::try_from(by)
        .ok()
        .and_then(|by| at.checked_add(by).ok())
        .unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: u64 = 3600;

    #[test]
    fn a_token_is_replaced_after_four_fifths_of_its_life_or_a_day() {
        for (life, expected) in [
            (600, 480),
            (HOUR, 2880),
            (24 * HOUR, 24 * HOUR * 4 / 5),
            (30 * HOUR, 24 * HOUR),
            (365 * 24 * HOUR, 24 * HOUR),
        ] {
            let end = Timestamp::from_second(i64::try_from(life).unwrap()).unwrap();
            let at = refresh_at(end, Some(Duration::from_secs(life)), 0);
            assert_eq!(at.as_second(), i64::try_from(expected).unwrap(), "{life}");
            let spread = refresh_at(end, Some(Duration::from_secs(life)), 999);
            let earlier = at.duration_since(spread);
            assert!(earlier > SignedDuration::from_secs(9), "{earlier}");
            assert!(earlier < SignedDuration::from_secs(10), "{earlier}");
        }
        let end = Timestamp::from_second(50).unwrap();
        assert_eq!(refresh_at(end, None, 5), end);
    }

    #[test]
    fn moments_are_spread_and_stay_the_same() {
        let of = |text: &str| spread_of(text) % 1000;
        assert_ne!(of("a"), of("b"));
        assert_eq!(of("a"), of("a"));
    }

    #[test]
    fn whatever_the_api_servers_clock_shows_a_token_is_replaced_in_the_second_half_of_its_life() {
        let asked = Timestamp::from_second(1_800_000_000).unwrap();
        for life in [600, HOUR, 24 * HOUR] {
            let seconds = i64::try_from(life).unwrap();
            for minutes in [-24 * 60, -60, -10, -1, 0, 1, 10, 60, 24 * 60] {
                let told = asked + SignedDuration::from_secs(seconds + minutes * 60);
                let lifetime = Some(Duration::from_secs(life));
                let end = by_own_clock(told, lifetime, asked);
                if minutes == 0 {
                    assert_eq!(end, told);
                }
                let at = refresh_at(end, lifetime, 0).duration_since(asked);
                let range = SignedDuration::from_secs(seconds / 2 - 1)
                    ..=SignedDuration::from_secs(seconds * 4 / 5);
                assert!(range.contains(&at), "{life} s, {minutes} min: {at:?}");
            }
        }
        assert_eq!(by_own_clock(asked, None, asked), asked);
        let ever = by_own_clock(Timestamp::MAX, Some(Duration::MAX), asked);
        assert_eq!(ever, Timestamp::MAX);
    }
}
