//! Tests of `observed_node`.

use super::*;

fn node(uid: &str, version: &str) -> Node {
    let mut node = Node::default();
    node.metadata.uid = uid.into();
    node.metadata.resource_version = version.into();
    node
}

fn shown(seen: &ObservedNode) -> Option<(&str, &str, bool)> {
    let node = seen.node.as_ref()?;
    let meta = &node.metadata;
    Some((&meta.uid, &meta.resource_version, seen.stale))
}

#[test]
fn the_newest_state_wins_whoever_shows_it() {
    let mut seen = ObservedNode::default();
    seen.answered(node("a", "5"));
    seen.applied(node("a", "3"));
    assert_eq!(shown(&seen), Some(("a", "5", false)));
    seen.applied(node("a", "7"));
    seen.answered(node("a", "6"));
    assert_eq!(shown(&seen), Some(("a", "7", false)));
    seen.applied(node("b", "9"));
    assert_eq!(shown(&seen), Some(("b", "9", false)));
}

#[test]
fn a_watch_that_is_behind_only_raises_doubt() {
    let mut seen = ObservedNode::default();
    seen.answered(node("a", "5"));
    seen.unlisted();
    assert_eq!(shown(&seen), Some(("a", "5", true)));
    seen.answered(node("a", "5"));
    assert_eq!(shown(&seen), Some(("a", "5", false)));
    seen.deleted(&node("z", "2"));
    seen.deleted(&node("a", "4"));
    assert_eq!(shown(&seen), Some(("a", "5", true)));
    seen.applied(node("a", "5"));
    assert_eq!(shown(&seen), Some(("a", "5", false)));
}

#[test]
fn a_node_that_the_watch_has_shown_is_gone_when_the_watch_says_so() {
    let mut seen = ObservedNode::default();
    seen.applied(node("a", "5"));
    seen.deleted(&node("a", "6"));
    assert_eq!(shown(&seen), None);
    seen.applied(node("b", "7"));
    seen.unlisted();
    assert_eq!(shown(&seen), None);
}
