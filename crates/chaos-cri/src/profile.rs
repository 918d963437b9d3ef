//! Profiles: sets of rules, chosen by a seed.

use crate::{dice::Dice, rule::Rule};

/// The profiles: name and description.
pub const PROFILES: [(&str, &str); 4] = [
    ("light", "some calls are slow or fail"),
    (
        "events",
        "events are late, lost, duplicated, reordered, stale, or not supported",
    ),
    (
        "rough",
        "both of these, and calls that hang, responses lost after the effect, closed connections",
    ),
    (
        "lies",
        "incomplete lists, exited containers reported as running, wrong pods in events",
    ),
];

/// A rule with placeholders that the seed fills in: `%%` is a share in percent, `@` milliseconds.
struct RuleTemplate {
    text: &'static str,
    percent: std::ops::Range<u64>,
    millis: std::ops::Range<u64>,
}

const fn template(
    text: &'static str,
    percent: std::ops::Range<u64>,
    millis: std::ops::Range<u64>,
) -> RuleTemplate {
    RuleTemplate {
        text,
        percent,
        millis,
    }
}

// Rare faults of all calls come first, because the first rule that matches wins.
const LIGHT: &[RuleTemplate] = &[
    template("*Status chance=%% fail=UNAVAILABLE", 1..6, 0..1),
    template("List* chance=%% fail=INTERNAL", 1..6, 0..1),
    template("StartContainer chance=%% fail=UNKNOWN", 1..4, 0..1),
    template("Stream* chance=%% eof", 1..10, 0..1),
    template("List* chance=%% delay=10ms..@ms", 5..40, 100..2000),
    template("*Container chance=%% delay=1ms..@ms", 5..40, 50..1500),
    template("*PodSandbox chance=%% delay=1ms..@ms", 5..40, 50..1500),
    template("*Status chance=%% delay=1ms..@ms", 5..40, 50..1500),
];
const EVENTS: &[RuleTemplate] = &[
    template(
        "GetContainerEvents chance=%% fail=UNIMPLEMENTED",
        1..40,
        0..1,
    ),
    template("GetContainerEvents chance=%% fail=OK", 1..20, 0..1),
    template("GetContainerEvents chance=%% hang", 1..8, 0..1),
    template("GetContainerEvents chance=%% withhold", 1..50, 0..1),
    template("GetContainerEvents chance=%% eof", 1..4, 0..1),
    template("GetContainerEvents chance=%% reset", 1..4, 0..1),
    template("GetContainerEvents chance=%% end", 1..4, 0..1),
    template("GetContainerEvents chance=%% drop", 1..25, 0..1),
    template("GetContainerEvents chance=%% duplicate=3", 1..25, 0..1),
    template("GetContainerEvents chance=%% swap", 1..25, 0..1),
    template("GetContainerEvents chance=%% reverse=5", 1..15, 0..1),
    template("GetContainerEvents chance=%% stale", 1..25, 0..1),
    template("GetContainerEvents chance=%% replay=200", 1..5, 0..1),
    template("GetContainerEvents chance=%% nil-sandbox", 1..25, 0..1),
    template(
        "GetContainerEvents chance=%% delay=1ms..@ms",
        5..60,
        10..1000,
    ),
];
const ROUGH: &[RuleTemplate] = &[
    template("GetContainerEvents chance=%% cut", 1..10, 0..1),
    template("ContainerStatus chance=1% times=%% cut", 1..6, 0..1),
    template("ContainerStatus chance=%% times=3 hang", 1..4, 0..1),
    template("PodSandboxStatus chance=%% times=3 hang", 1..4, 0..1),
    template("List* chance=1% times=%% hang", 1..4, 0..1),
    template("Status chance=2% times=1 freeze=@ms", 1..2, 500..8000),
    template("RunPodSandbox chance=%% lost=UNAVAILABLE", 1..20, 0..1),
    template(
        "CreateContainer chance=%% lost=DEADLINE_EXCEEDED",
        1..20,
        0..1,
    ),
    template("StartContainer chance=%% lost=UNAVAILABLE", 1..20, 0..1),
    template("StopContainer chance=%% lost=UNKNOWN", 1..20, 0..1),
    template("Remove* chance=%% lost=UNAVAILABLE", 1..20, 0..1),
    template("CreateContainer chance=%% times=2 lost", 1..8, 0..1),
    template("StartContainer chance=%% times=2 eof", 1..8, 0..1),
    template("List* chance=%% huge", 1..3, 0..1),
];
const LIES: &[RuleTemplate] = &[
    template("ListContainers chance=%% partial", 1..15, 0..1),
    template("StreamContainers chance=%% partial", 1..15, 0..1),
    template("ListPodSandbox chance=%% partial", 1..10, 0..1),
    template("ListContainers chance=%% empty", 1..5, 0..1),
    template("ContainerStatus chance=%% running", 5..60, 0..1),
    template("ListContainers chance=%% running", 5..60, 0..1),
    template("GetContainerEvents chance=%% wrong-uid", 5..50, 0..1),
];

/// The rules that `seed` chooses from a profile; `None` if there is no such profile.
#[must_use]
pub fn profile(name: &str, seed: u64) -> Option<Vec<Rule>> {
    let drafts: Vec<&RuleTemplate> = match name {
        "light" => LIGHT.iter().collect(),
        "events" => EVENTS.iter().collect(),
        "rough" => ROUGH.iter().chain(EVENTS).chain(LIGHT).collect(),
        "lies" => LIES.iter().collect(),
        _ => return None,
    };
    let mut dice = Dice::new(seed);
    let rules = drafts.iter().filter_map(|template| {
        let percent = dice.within(&template.percent);
        let millis = dice.within(&template.millis);
        // Each seed uses a different part of the profile, so that faults also occur individually.
        let drawn = dice.below(3) > 0;
        let share = if template.text.contains("times=%%") {
            ""
        } else {
            "%"
        };
        let text = template
            .text
            .replace("%%", &format!("{percent}{share}"))
            .replace('@', &millis.to_string());
        drawn.then(|| {
            text.parse()
                .expect("a template is a rule; a test reads all of them")
        })
    });
    Some(rules.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_profile_has_valid_rules_and_is_reproducible() {
        for (name, _) in PROFILES {
            for seed in 0..200 {
                let rules = profile(name, seed).unwrap();
                assert_eq!(rules, profile(name, seed).unwrap(), "{name} {seed}");
            }
            assert_ne!(profile(name, 1), profile(name, 2), "{name}");
        }
        assert_eq!(profile("rouhg", 1), None);
    }
}
