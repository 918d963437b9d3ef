//! Edits that replace pods.

use rubelet_api::annotations::CONFIG_HASH;

use super::*;

#[test]
fn an_edit_that_replaces_gives_only_the_edited_pod_another_uid() {
    let mut node = Node::replacing();
    let list = |a: &str| format!("{}---\n{}", pod("a", a), pod("b", "one"));
    node.directory(&[("/m/a", &list("one"))]);
    let [a, b] = ["a", "b"].map(|name| node.identity(name));
    node.directory(&[("/m/a", &format!("# a comment\n{}", list("one")))]);
    assert_eq!(
        (node.identity("a"), node.identity("b")),
        (a.clone(), b.clone())
    );
    node.directory(&[("/m/a", &list("two"))]);
    assert_eq!(node.identity("b"), b);
    let edited = node.identity("a");
    assert_ne!(edited.0, a.0);
    assert_eq!(edited.1, Some(time(3)), "it is seen for the first time");
    node.directory(&[("/m/a", &list("one"))]);
    assert_eq!(node.identity("a").0, a.0, "as it was");
}

#[test]
fn a_manifest_that_is_removed_and_written_again_makes_another_pod_where_edits_replace() {
    let text = pod("a", "one");
    for (mut node, replaces) in [(Node::replacing(), true), (Node::new(), false)] {
        node.directory(&[("/m/a", &text)]);
        let mut known = vec![node.identity("a").0];
        node.recreate("/m/a", &text);
        known.push(node.identity("a").0);
        // Between two scans, and nobody saw the one without it.
        node.directory(&[]);
        node.directory(&[("/m/a", &text)]);
        known.push(node.identity("a").0);
        node.directory(&[("/m/a", &text)]);
        assert_eq!(node.identity("a").0, known[2], "nothing happened");
        known.sort();
        known.dedup();
        assert_eq!(known.len(), if replaces { 3 } else { 1 });
    }
}

#[test]
fn a_uid_in_the_manifest_is_kept_by_every_edit() {
    let text = |image: &str| pod("a", image).replace("  name: a\n", "  name: a\n  uid: mine\n");
    let mut node = Node::replacing();
    node.directory(&[("/m/a", &text("one"))]);
    node.directory(&[("/m/a", &text("two"))]);
    node.recreate("/m/a", &text("two"));
    assert_eq!(node.identity("a").0.as_str(), "mine");
}

#[test]
fn a_replaced_pod_is_not_adopted_by_the_next_run_of_the_agent() {
    let mut node = Node::replacing();
    node.directory(&[("/m/a", &pod("a", "one"))]);
    let name = PodName::new("default", "a-node");
    let old = Arc::clone(&node.state.desired().pods[&name]);
    let running = AdoptedPod {
        uid: old.uid.clone(),
        content: Some(old.annotations[CONFIG_HASH].clone()),
    };
    let adopted = AdoptedPods::from([(name, vec![running])]);
    for (image, same) in [("one", true), ("two", false)] {
        let mut next = Node::editing(ManifestEdits::Replace, adopted.clone(), &[]);
        next.directory(&[("/m/a", &pod("a", image))]);
        assert_eq!(next.identity("a").0 == old.uid, same, "{image}");
    }
}
