//! Mixes of rules that have a name.

use super::Rule;

/// The profiles: name, and what they do.
pub const PROFILES: [(&str, &str); 4] = [
    (
        "slow",
        "every answer takes its time; writes take longer than reads, as with a slow disk",
    ),
    (
        "busy",
        "429 with Retry-After, conflicts and server errors now and then",
    ),
    (
        "flaky",
        "connections cut before, after and in the middle of answers; watches that end early",
    ),
    (
        "rough",
        "all of those, and watches that stall or expire, and requests that hang",
    ),
];

const SLOW: &[&str] = &[
    "write * delay=20ms..400ms",
    "get * delay=1ms..20ms",
    "list * delay=5ms..100ms",
];
const BUSY: &[&str] = &[
    "* * chance=3% retry-after=1 code=429",
    "write * chance=4% code=409",
    "* * chance=2% code=500",
    "* * chance=2% code=503",
    "write * chance=1% lost=504",
];
const FLAKY: &[&str] = &[
    "* * chance=1% cut",
    "* * chance=1% cut-after",
    "list * chance=3% cut-body",
    "get * chance=1% cut-body",
    "watch * chance=30% end=3s",
];
const STUCK: &[&str] = &[
    "watch * chance=15% stall=5s",
    "watch * chance=10% expire",
    "* * chance=0.5% hang",
];

/// The rules of a profile; `None` for an unknown name.
#[must_use]
pub fn profile(name: &str) -> Option<Vec<Rule>> {
    let parts: &[&[&str]] = match name {
        "slow" => &[SLOW],
        "busy" => &[BUSY],
        "flaky" => &[FLAKY],
        "rough" => &[SLOW, STUCK, BUSY, FLAKY],
        _ => return None,
    };
    let rules = parts.iter().copied().flatten();
    Some(
        rules
            .map(|rule| rule.parse().expect("all rules are read by a test"))
            .collect(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_profiles_can_be_had() {
        for (name, _) in PROFILES {
            assert!(!profile(name).expect(name).is_empty());
        }
        assert!(profile("calm").is_none());
    }
}
