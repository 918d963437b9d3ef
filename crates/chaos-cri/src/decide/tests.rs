//! Tests of `decide`.

use rubelet_cri::v1::ContainerEventType::ContainerStoppedEvent;

use super::*;
use crate::rpc::named;

fn rules(seed: u64, texts: &[&str]) -> Rules {
    Rules::new(
        seed,
        texts.iter().map(|text| text.parse().unwrap()).collect(),
    )
}

fn about(id: &str) -> Subject {
    Subject {
        ids: vec![id.to_owned()],
        ..Subject::default()
    }
}

/// Which of the first calls of `name` get the fault.
fn hits(rules: &mut Rules, name: &str, count: usize) -> Vec<usize> {
    let rpc = named(name).unwrap();
    (0..count)
        .filter(|_| rules.decide(Stage::Call, rpc, &about("abc")).is_some())
        .collect()
}

#[test]
fn conditions_choose_among_the_matching_calls() {
    for (rule, expected) in [
        ("Version hang", vec![0, 1, 2, 3, 4, 5, 6, 7]),
        ("Version hang times=2", vec![0, 1]),
        ("Version hang skip=3", vec![3, 4, 5, 6, 7]),
        ("Version hang every=3", vec![0, 3, 6]),
        ("Version hang skip=1 every=3 times=2", vec![1, 4]),
        ("Version hang chance=0%", vec![]),
        ("Status hang", vec![]),
        ("V* hang times=1", vec![0]),
    ] {
        assert_eq!(
            hits(&mut rules(1, &[rule]), "Version", 8),
            expected,
            "{rule}"
        );
    }
}

#[test]
fn decisions_of_a_rule_do_not_depend_on_other_rules() {
    let chance = "Version hang chance=30%";
    let alone = hits(&mut rules(5, &[chance]), "Version", 100);
    assert!((10..60).contains(&alone.len()), "{alone:?}");
    let mut beside = rules(5, &[chance, "Status hang chance=50%"]);
    hits(&mut beside, "Status", 17);
    assert_eq!(hits(&mut beside, "Version", 100), alone);
    assert_ne!(hits(&mut rules(6, &[chance]), "Version", 100), alone);
}

#[test]
fn the_first_rule_that_matches_wins() {
    let mut both = rules(1, &["Version hang times=1", "* fail=INTERNAL"]);
    let version = named("Version").unwrap();
    let mut next = || both.decide(Stage::Call, version, &Subject::default());
    assert_eq!(next().unwrap().fault, Fault::Hang);
    assert_eq!(next().unwrap().rule, "* fail=INTERNAL");
}

#[test]
fn a_rule_applies_to_its_selection() {
    let pods = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let event = Subject {
        ids: vec!["abcdef".into(), "sandbox".into()],
        pods: pods(&["uid-1", "web-1", "default/web-1"]),
        event: Some(ContainerStoppedEvent),
    };
    for (rule, hit) in [
        ("GetContainerEvents drop", true),
        ("GetContainerEvents id=abc drop", true),
        ("GetContainerEvents id=sandbox drop", true),
        ("GetContainerEvents id=bc drop", false),
        ("GetContainerEvents pod=web-* drop", true),
        ("GetContainerEvents pod=uid-1 drop", true),
        ("GetContainerEvents pod=default/web-1 drop", true),
        ("GetContainerEvents pod=web drop", false),
        ("GetContainerEvents event=STOPPED drop", true),
        ("GetContainerEvents event=stopped id=abc drop", true),
        ("GetContainerEvents event=STARTED drop", false),
        ("StreamContainers drop", false),
        // Chosen when the stream begins, not for its messages.
        ("GetContainerEvents hang", false),
    ] {
        let events = named("GetContainerEvents").unwrap();
        let decided = rules(1, &[rule]).decide(Stage::Message, events, &event);
        assert_eq!(decided.is_some(), hit, "{rule}");
    }
}

#[test]
fn a_rule_about_items_applies_to_every_list() {
    let lists = named("ListContainers").unwrap();
    for (rule, hit) in [
        ("ListContainers id=xyz running", true),
        ("ListContainers id=xyz empty", true),
        ("ListContainers id=xyz hang", false),
    ] {
        let decided = rules(1, &[rule]).decide(Stage::Call, lists, &Subject::default());
        assert_eq!(decided.is_some(), hit, "{rule}");
    }
}
