//! Profiles: named sets of rules.

use super::Rule;

/// The profiles: name and description.
pub const PROFILES: [(&str, &str); 4] = [
    (
        "slow",
        "all responses are slow; writes are slower than reads, as with a slow disk",
    ),
    (
        "busy",
        "some requests fail with 429 and Retry-After, a conflict or a server error",
    ),
    (
        "flaky",
        "connections are closed before, after and in the middle of responses; watches end early",
    ),
    (
        "rough",
        "all of these, and watches that stall or expire, and requests that hang",
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
            .map(|rule| rule.parse().expect("a test parses all rules"))
            .collect(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_profiles_are_valid() {
        for (name, _) in PROFILES {
            assert!(!profile(name).expect(name).is_empty());
        }
        assert!(profile("calm").is_none());
    }
}
