//! Tests of `store`.

use std::time::Duration;

use serde_json::json;

use super::*;

fn pod(name: &str, label: u8) -> Value {
    json!({ "metadata": { "namespace": "a", "name": name, "labels": { "n": label } } })
}

fn names(objects: &Objects) -> Vec<&str> {
    objects.keys().map(|(_, name)| name.as_str()).collect()
}

#[test]
fn earlier_versions_are_available_until_compaction() {
    let mut store = Store::new(100);
    store.put("pods", pod("one", 1));
    let first = store.version();
    store.put("nodes", json!({ "metadata": { "name": "n" } }));
    store.put("pods", pod("two", 1));
    store.put("pods", pod("one", 2));
    store.remove("pods", "a", "two");
    assert_eq!(names(&store.at("pods", first).unwrap()), ["one"]);
    assert_eq!(names(&store.at("pods", first + 2).unwrap()), ["one", "two"]);
    let old = store.at("pods", first).unwrap();
    assert_eq!(old.values().next().unwrap()["metadata"]["labels"]["n"], 1);
    let changes = store.since(first).unwrap().map(|change| change.version);
    assert!(changes.eq(first + 1..=first + 4));
    store.compact();
    assert_eq!(
        store.at("pods", first),
        Err(Compacted { oldest: first + 4 })
    );
    assert_eq!(store.since(first + 4).unwrap().count(), 0);
}

#[test]
fn the_number_of_remembered_changes_is_limited() {
    let mut store = Store::new(3);
    for label in 0..10 {
        store.put("pods", pod("one", label));
    }
    let now = store.version();
    assert_eq!(store.since(now - 3).unwrap().count(), 3);
    assert!(store.since(now - 4).is_err());
}

#[tokio::test(start_paused = true)]
async fn objects_at_an_earlier_time_are_found() {
    const SECOND: Duration = Duration::from_secs(1);
    let mut store = Store::new(100);
    let before = Instant::now();
    tokio::time::sleep(SECOND).await;
    store.put("pods", pod("one", 1));
    store.put("pods", pod("two", 1));
    store.put(
        "nodes",
        json!({ "metadata": { "namespace": "a", "name": "one" } }),
    );
    let then = Instant::now();
    tokio::time::sleep(SECOND).await;
    store.put("pods", pod("one", 2));
    store.put("pods", pod("one", 3));
    store.remove("pods", "a", "two");
    let label = |name, time| {
        let found = store.get_then("pods", ("a", name), time);
        found.and_then(|pod| pod["metadata"]["labels"]["n"].as_u64())
    };
    for (time, expected) in [
        (before, [None, None]),
        (then, [Some(1), Some(1)]),
        (Instant::now(), [Some(3), None]),
    ] {
        assert_eq!(["one", "two"].map(|name| label(name, time)), expected);
        let all = store.collection_then("pods", time);
        assert_eq!(all.len(), expected.iter().flatten().count());
    }
    store.compact();
    assert_eq!(names(&store.collection_then("pods", then)), ["one"]);
}
