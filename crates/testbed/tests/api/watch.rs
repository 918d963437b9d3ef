//! Watches: every lasting state is reported, in order, and nothing is lost by a disconnection.

use std::collections::BTreeMap;

use rubelet_testbed::Agent;
use rubelet_testbed::status::is_ready;
use serde_json::Value;

use crate::outside::raw_http::{Stream, request};
use crate::outside::{self, PodText, states};

const PODS: &str = "/api/v1/namespaces/default/pods";

fn watch(agent: &Agent, query: &str) -> Stream {
    let line = format!("GET {PODS}?watch=true{query}");
    Stream::open(&agent.api_socket(), &line, &[])
}

fn list_version(agent: &Agent) -> String {
    let list = agent.get_json(PODS).unwrap();
    list["metadata"]["resourceVersion"]
        .as_str()
        .unwrap()
        .to_owned()
}

/// Reads events until one matches; returns type and object of each.
fn until(stream: &mut Stream, wanted: impl Fn(&str, &Value) -> bool) -> Vec<(String, Value)> {
    let mut seen = Vec::new();
    while let Some(mut event) = stream.json_line() {
        let kind = event["type"].as_str().unwrap().to_owned();
        let object = event["object"].take();
        let last = wanted(&kind, &object);
        seen.push((kind, object));
        if last {
            return seen;
        }
    }
    panic!("the watch has ended after {seen:#?}");
}

fn version(object: &Value) -> u64 {
    let text = object["metadata"]["resourceVersion"].as_str();
    text.unwrap().parse().unwrap()
}

#[test]
fn a_watch_sends_additions_changes_and_removals_in_order() {
    let (_runtime, mut agent) = outside::with_pods(&[PodText::new("first")]);
    let since = list_version(&agent);
    let mut from_list = watch(&agent, &format!("&resourceVersion={since}"));
    let mut from_nothing = watch(&agent, "");
    let mut by_label = watch(&agent, "&labelSelector=colour%3Dred");
    let initial = until(&mut from_nothing, |kind, _| kind == "ADDED");
    assert_eq!(initial[0].1["metadata"]["name"], "first-testnode");

    let second = PodText::new("second").label("colour", "red");
    agent.write_manifest("second.yaml", &second.yaml()).unwrap();
    states::wait_ready(&agent, "second");
    let blue = second.clone().label("colour", "blue");
    agent.write_manifest("second.yaml", &blue.yaml()).unwrap();
    states::wait_pod(&agent, "second", "is blue", |pod| {
        pod["metadata"]["labels"]["colour"] == "blue"
    });
    agent.remove_manifest("second.yaml").unwrap();
    states::wait_gone(&agent, "second");

    let deleted = |kind: &str, _: &Value| kind == "DELETED";
    for stream in [&mut from_list, &mut from_nothing] {
        let seen = until(stream, deleted);
        assert!(
            seen.iter()
                .all(|(_, pod)| pod["metadata"]["name"] == "second-testnode")
        );
        let kinds: Vec<&str> = seen.iter().map(|(kind, _)| kind.as_str()).collect();
        let (first, middle) = (kinds[0], &kinds[1..kinds.len() - 1]);
        assert_eq!(first, "ADDED", "{kinds:?}");
        assert!(!middle.is_empty(), "{kinds:?}");
        assert!(middle.iter().all(|kind| *kind == "MODIFIED"), "{kinds:?}");
        assert!(
            seen.iter().any(|(_, pod)| is_ready(pod)),
            "it was ready once"
        );
        let versions: Vec<u64> = seen.iter().map(|(_, pod)| version(pod)).collect();
        assert!(versions.is_sorted(), "{versions:?}");
    }
    // A watch with a selector sends a deletion when the pod no longer matches.
    let seen = until(&mut by_label, deleted);
    assert_eq!(seen[0].0, "ADDED");
    assert_eq!(
        seen.len(),
        1 + seen.iter().filter(|(kind, _)| kind == "MODIFIED").count() + 1
    );

    // After a disconnection, the next watch sends what was missed.
    let since = list_version(&agent);
    agent
        .write_manifest("third.yaml", &PodText::new("third").yaml())
        .unwrap();
    states::wait_ready(&agent, "third");
    agent.remove_manifest("first.yaml").unwrap();
    states::wait_gone(&agent, "first");
    let mut resumed = watch(&agent, &format!("&resourceVersion={since}"));
    let seen = until(&mut resumed, deleted);
    let mut latest = BTreeMap::new();
    for (kind, pod) in &seen {
        latest.insert(pod["metadata"]["name"].as_str().unwrap(), kind.as_str());
    }
    assert_eq!(latest["first-testnode"], "DELETED");
    assert_eq!(
        latest["third-testnode"], "ADDED",
        "told once, as it is now: {seen:#?}"
    );

    // The versions of an earlier agent are too old.
    let since = list_version(&agent);
    agent.terminate().unwrap();
    assert!(
        resumed
            .json_line()
            .is_none_or(|event| event["type"] != "ERROR")
    );
    agent.start().unwrap();
    states::wait_all_ready(&agent, 1);
    let line = format!("GET {PODS}?watch=true&resourceVersion={since}");
    let answer = request(&agent.api_socket(), &line, &[]);
    assert_eq!(answer.status, 410, "{answer:#?}");
    assert!(list_version(&agent).parse::<u64>().unwrap() > since.parse().unwrap());
}

#[test]
fn a_watch_ends_after_its_timeout_and_sends_bookmarks() {
    let shown = crate::Shown::shared();
    let query = "&timeoutSeconds=1&allowWatchBookmarks=true";
    let mut stream = watch(&shown.agent, query);
    assert_eq!(stream.status, 200);
    let mut seen = Vec::new();
    while let Some(event) = stream.json_line() {
        seen.push(event);
    }
    let kinds: Vec<&str> = seen
        .iter()
        .filter_map(|event| event["type"].as_str())
        .collect();
    assert_eq!(
        kinds.iter().filter(|kind| **kind == "ADDED").count(),
        2,
        "{kinds:?}"
    );
    let last = seen.last().unwrap();
    assert_eq!(last["type"], "BOOKMARK", "{kinds:?}");
    let newest = seen.iter().map(|event| version(&event["object"])).max();
    assert_eq!(Some(version(&last["object"])), newest);
}
