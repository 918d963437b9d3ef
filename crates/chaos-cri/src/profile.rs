//! Mixes of rules that a seed draws.

use crate::{dice::Dice, rule::Rule};

/// The profiles: name and what they do.
pub const PROFILES: [(&str, &str); 4] = [
    ("light", "calls are slow or fail now and then"),
    (
        "events",
        "events are late, lost, doubled, out of order, old, or not offered",
    ),
    (
        "rough",
        "both of those, and calls that hang, answers lost after the work was done, cut connections",
    ),
    (
        "lies",
        "lists with holes, containers said to run that have ended, wrong pods in events",
    ),
];

/// A rule with what the seed decides left open: `%` is a share in percent, `@` milliseconds.
struct Draft {
    text: &'static str,
    percent: std::ops::Range<u64>,
    millis: std::ops::Range<u64>,
}

const fn draft(
    text: &'static str,
    percent: std::ops::Range<u64>,
    millis: std::ops::Range<u64>,
) -> Draft {
    Draft {
        text,
        percent,
        millis,
    }
}

// Rare faults of all calls stand first: the first rule that holds wins.
const LIGHT: &[Draft] = &[
    draft("*Status chance=%% fail=UNAVAILABLE", 1..6, 0..1),
    draft("List* chance=%% fail=INTERNAL", 1..6, 0..1),
    draft("StartContainer chance=%% fail=UNKNOWN", 1..4, 0..1),
    draft("Stream* chance=%% eof", 1..10, 0..1),
    draft("List* chance=%% delay=10ms..@ms", 5..40, 100..2000),
    draft("*Container chance=%% delay=1ms..@ms", 5..40, 50..1500),
    draft("*PodSandbox chance=%% delay=1ms..@ms", 5..40, 50..1500),
    draft("*Status chance=%% delay=1ms..@ms", 5..40, 50..1500),
];
const EVENTS: &[Draft] = &[
    draft(
        "GetContainerEvents chance=%% fail=UNIMPLEMENTED",
        1..40,
        0..1,
    ),
    draft("GetContainerEvents chance=%% fail=OK", 1..20, 0..1),
    draft("GetContainerEvents chance=%% hang", 1..8, 0..1),
    draft("GetContainerEvents chance=%% withhold", 1..50, 0..1),
    draft("GetContainerEvents chance=%% eof", 1..4, 0..1),
    draft("GetContainerEvents chance=%% reset", 1..4, 0..1),
    draft("GetContainerEvents chance=%% end", 1..4, 0..1),
    draft("GetContainerEvents chance=%% drop", 1..25, 0..1),
    draft("GetContainerEvents chance=%% duplicate=3", 1..25, 0..1),
    draft("GetContainerEvents chance=%% swap", 1..25, 0..1),
    draft("GetContainerEvents chance=%% reverse=5", 1..15, 0..1),
    draft("GetContainerEvents chance=%% stale", 1..25, 0..1),
    draft("GetContainerEvents chance=%% replay=200", 1..5, 0..1),
    draft("GetContainerEvents chance=%% nil-sandbox", 1..25, 0..1),
    draft(
        "GetContainerEvents chance=%% delay=1ms..@ms",
        5..60,
        10..1000,
    ),
];
const ROUGH: &[Draft] = &[
    draft("GetContainerEvents chance=%% cut", 1..10, 0..1),
    draft("ContainerStatus chance=1% times=%% cut", 1..6, 0..1),
    draft("ContainerStatus chance=%% times=3 hang", 1..4, 0..1),
    draft("PodSandboxStatus chance=%% times=3 hang", 1..4, 0..1),
    draft("List* chance=1% times=%% hang", 1..4, 0..1),
    draft("Status chance=2% times=1 freeze=@ms", 1..2, 500..8000),
    draft("RunPodSandbox chance=%% lost=UNAVAILABLE", 1..20, 0..1),
    draft(
        "CreateContainer chance=%% lost=DEADLINE_EXCEEDED",
        1..20,
        0..1,
    ),
    draft("StartContainer chance=%% lost=UNAVAILABLE", 1..20, 0..1),
    draft("StopContainer chance=%% lost=UNKNOWN", 1..20, 0..1),
    draft("Remove* chance=%% lost=UNAVAILABLE", 1..20, 0..1),
    draft("CreateContainer chance=%% times=2 lost", 1..8, 0..1),
    draft("StartContainer chance=%% times=2 eof", 1..8, 0..1),
    draft("List* chance=%% huge", 1..3, 0..1),
];
const LIES: &[Draft] = &[
    draft("ListContainers chance=%% partial", 1..15, 0..1),
    draft("StreamContainers chance=%% partial", 1..15, 0..1),
    draft("ListPodSandbox chance=%% partial", 1..10, 0..1),
    draft("ListContainers chance=%% empty", 1..5, 0..1),
    draft("ContainerStatus chance=%% running", 5..60, 0..1),
    draft("ListContainers chance=%% running", 5..60, 0..1),
    draft("GetContainerEvents chance=%% wrong-uid", 5..50, 0..1),
];

/// The rules that `seed` draws from a profile; `None` if there is no such profile.
#[must_use]
pub fn profile(name: &str, seed: u64) -> Option<Vec<Rule>> {
    let drafts: Vec<&Draft> = match name {
        "light" => LIGHT.iter().collect(),
        "events" => EVENTS.iter().collect(),
        "rough" => ROUGH.iter().chain(EVENTS).chain(LIGHT).collect(),
        "lies" => LIES.iter().collect(),
        _ => return None,
    };
    let mut dice = Dice::new(seed);
    let rules = drafts.iter().filter_map(|draft| {
        let percent = dice.within(&draft.percent);
        let millis = dice.within(&draft.millis);
        // A different part of the profile with each seed, so that faults are also seen alone.
        let drawn = dice.below(3) > 0;
        let share = if draft.text.contains("times=%%") {
            ""
        } else {
            "%"
        };
        let text = draft
            .text
            .replace("%%", &format!("{percent}{share}"))
            .replace('@', &millis.to_string());
        drawn.then(|| {
            text.parse()
                .expect("a draft is a rule; a test reads all of them")
        })
    });
    Some(rules.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_profile_is_made_of_rules_and_repeats_itself() {
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
