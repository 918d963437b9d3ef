//! Tests of `unreadable`.

use std::sync::atomic::AtomicI64;

use super::*;

fn field(path: &str) -> SkippedField {
    SkippedField {
        field: path.to_owned(),
        problem: "expected a list".to_owned(),
    }
}

fn objects() -> (UnreadableObjects, Arc<AtomicI64>) {
    let time = Arc::new(AtomicI64::new(100));
    let read = Arc::clone(&time);
    let clock = move || Timestamp::from_second(read.load(Ordering::Relaxed)).unwrap();
    (UnreadableObjects::new(Arc::new(clock)), time)
}

#[test]
fn paths_name_objects() {
    for (path, shown) in [
        ("/api/v1/nodes/a", "nodes a"),
        ("/api/v1/nodes/a/status", "nodes a"),
        ("/api/v1/namespaces/b/pods/a/status?x=y", "pods b/a"),
        ("/api/v1/namespaces/b", "namespaces b"),
        (
            "/api/v1/namespaces/b/serviceaccounts/a/token",
            "serviceaccounts/token b/a",
        ),
        (
            "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/n",
            "leases kube-node-lease/n",
        ),
        ("/apis/node.k8s.io/v1/runtimeclasses", "runtimeclasses "),
        ("/", " "),
    ] {
        assert_eq!(object_of_path(path).to_string(), shown, "{path}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_read_is_reported_until_it_can() {
    let (unreadable, time) = objects();
    let node = object_of_path("/api/v1/nodes/a");
    unreadable.note("x", &node, vec![field("status.images")]);
    time.store(200, Ordering::Relaxed);
    unreadable.note("x", &node, vec![field("spec.taints")]);
    unreadable.put("y", &node, vec![field("spec")], Retention::Temporary);
    let shown = unreadable.list();
    assert_eq!(shown.len(), 1);
    assert_eq!(shown[0].since.as_second(), 100);
    assert_eq!(shown[0].fields, [field("spec.taints"), field("spec")]);
    tokio::time::advance(TEMPORARY_FOR).await;
    assert_eq!(unreadable.list()[0].fields, [field("spec.taints")]);
    unreadable.note("x", &node, vec![]);
    assert!(unreadable.list().is_empty() && unreadable.is_empty());
}

#[test]
fn no_server_can_fill_the_memory() {
    let (unreadable, _) = objects();
    for number in 0..1000 {
        let fields = (0..50).map(|one| field(&one.to_string())).collect();
        unreadable.note(
            "x",
            &object_of_path(&format!("/api/v1/nodes/{number}")),
            fields,
        );
    }
    let shown = unreadable.list();
    assert_eq!(
        (shown.len(), shown[0].fields.len()),
        (MAX_OBJECTS, MAX_FIELDS)
    );
}

#[tokio::test(start_paused = true)]
async fn objects_beyond_the_first_hundred_are_told_once() {
    let (unreadable, _) = objects();
    let node = |number: usize| object_of_path(&format!("/api/v1/nodes/{number}"));
    let overflowed = || unreadable.0.overflowed.load(Ordering::Relaxed);
    for number in 0..MAX_OBJECTS {
        unreadable.note("x", &node(number), vec![field("spec")]);
    }
    unreadable.note("x", &node(0), vec![field("status")]);
    assert!(!overflowed());
    for _ in 0..2 {
        unreadable.note("x", &node(MAX_OBJECTS), vec![field("spec")]);
        assert!(overflowed());
    }
    assert_eq!(unreadable.list().len(), MAX_OBJECTS);
    unreadable.note("x", &node(0), vec![]);
    unreadable.note("x", &node(MAX_OBJECTS), vec![field("spec")]);
    assert!(!overflowed());
}
