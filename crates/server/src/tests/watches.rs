//! Watches: their events, their start version, and their end.

use std::time::Duration;

use serde_json::json;

use super::fixture::TestServer;
use crate::testing::{FIRST, phased_pod, pod};

#[tokio::test]
async fn a_watch_goes_on_where_a_list_ended() {
    let server = TestServer::with_pods().await;
    let version = server.get("/api/v1/pods").await.json()["metadata"]["resourceVersion"].clone();
    let path = format!(
        "/api/v1/pods?watch=true&resourceVersion={}",
        version.as_str().unwrap()
    );
    let mut watch = server.open("GET", &path, "").await;
    assert_eq!(watch.code, 200);
    server.node.pods.put(pod("default", "new", "web", &["a"]));
    assert_eq!(watch.change().await, "ADDED new");
    server.node.pods.put(pod("default", "web", "web", &["a"]));
    let (kind, name, object) = watch.event().await;
    assert_eq!((kind.as_str(), name.as_str()), ("MODIFIED", "web"));
    assert_eq!(
        object["metadata"]["resourceVersion"],
        (FIRST + 5).to_string()
    );
    server.node.pods.remove("default", "web");
    let (kind, name, object) = watch.event().await;
    assert_eq!((kind.as_str(), name.as_str()), ("DELETED", "web"));
    assert_eq!(
        object["metadata"]["resourceVersion"],
        (FIRST + 6).to_string()
    );
    assert_eq!(object["status"]["phase"], "Running");
}

#[tokio::test]
async fn a_watch_without_a_version_begins_with_what_is_there() {
    let server = TestServer::with_pods().await;
    for query in ["watch=1", "watch=1&resourceVersion=0"] {
        let path = format!("/api/v1/namespaces/default/pods?{query}");
        let mut watch = server.open("GET", &path, "").await;
        assert_eq!(watch.change().await, "ADDED db");
        assert_eq!(watch.change().await, "ADDED web");
        server
            .node
            .pods
            .put(pod("kube-system", "dns", "dns", &["a"]));
        server.node.pods.put(pod("default", "db", "db", &["a"]));
        assert_eq!(watch.change().await, "MODIFIED db");
    }
}

#[tokio::test]
async fn the_end_of_what_is_there_can_be_marked() {
    let server = TestServer::with_pods().await;
    let query = "watch=1&sendInitialEvents=true&allowWatchBookmarks=true";
    let path = format!("/api/v1/namespaces/kube-system/pods?{query}");
    assert_eq!(server.get(&path).await.code, 400);
    let path = format!("{path}&resourceVersionMatch=NotOlderThan");
    let mut watch = server.open("GET", &path, "").await;
    assert_eq!(watch.change().await, "ADDED dns");
    let (kind, _, object) = watch.event().await;
    assert_eq!(kind, "BOOKMARK");
    assert_eq!(
        object["metadata"]["annotations"]["k8s.io/initial-events-end"],
        "true"
    );
    assert_eq!(
        object["metadata"]["resourceVersion"],
        (FIRST + 3).to_string()
    );
}

#[tokio::test]
async fn versions_that_are_not_known_are_gone() {
    let server = TestServer::with_pods().await;
    for version in [1, FIRST - 1, FIRST + 4] {
        let path = format!("/api/v1/pods?watch=1&resourceVersion={version}");
        let reply = server.get(&path).await;
        assert_eq!(
            (reply.code, &reply.json()["reason"]),
            (410, &json!("Expired")),
            "{version}"
        );
    }
}

#[tokio::test]
async fn a_reader_who_missed_deletions_must_list_again() {
    let server = TestServer::with_pods().await;
    let path = format!("/api/v1/pods?watch=1&resourceVersion={FIRST}");
    for number in 0..6 {
        let name = format!("short-lived-{number}");
        server.node.pods.put(pod("default", &name, "x", &["a"]));
        server.node.pods.remove("default", &name);
    }
    let reply = server.get(&path).await;
    assert_eq!(
        (reply.code, &reply.json()["reason"]),
        (410, &json!("Expired"))
    );
}

#[tokio::test]
async fn objects_enter_and_leave_a_selection() {
    let server = TestServer::with_pods().await;
    let version = FIRST + 3;
    let path = format!(
        "/api/v1/pods?watch=1&resourceVersion={version}&fieldSelector=status.phase%3DRunning\
         &labelSelector=app"
    );
    let mut watch = server.open("GET", &path, "").await;
    let pods = &server.node.pods;
    pods.put(phased_pod("default", "job", "job", &["a"], "Pending"));
    pods.put(phased_pod("default", "job", "job", &["a"], "Running"));
    assert_eq!(watch.change().await, "ADDED job");
    pods.put(phased_pod("default", "job", "job2", &["a"], "Running"));
    assert_eq!(watch.change().await, "MODIFIED job");
    pods.put(phased_pod("default", "web", "web", &["a"], "Failed"));
    let (kind, name, object) = watch.event().await;
    assert_eq!((kind.as_str(), name.as_str()), ("DELETED", "web"));
    assert_eq!(
        object["metadata"]["resourceVersion"],
        (version + 4).to_string()
    );
    pods.remove("default", "web");
    pods.remove("default", "db");
    assert_eq!(watch.change().await, "DELETED db");
}

#[tokio::test]
async fn what_changed_between_list_and_watch_is_reported_in_full() {
    let server = TestServer::with_pods().await;
    let pods = &server.node.pods;
    pods.put(pod("default", "db", "other", &["a"]));
    pods.put(pod("default", "new", "web", &["a"]));
    let path = format!(
        "/api/v1/pods?watch=1&resourceVersion={}&labelSelector=app%3Ddb",
        FIRST + 3
    );
    let mut watch = server.open("GET", &path, "").await;
    assert_eq!(watch.change().await, "DELETED db");
    pods.put(pod("default", "db", "db", &["a"]));
    assert_eq!(watch.change().await, "ADDED db");

    let path = format!(
        "/api/v1/pods?watch=1&resourceVersion={}&fieldSelector=metadata.name%3Dweb",
        FIRST + 3
    );
    let mut watch = server.open("GET", &path, "").await;
    pods.put(pod("default", "web", "web", &["a"]));
    assert_eq!(watch.change().await, "MODIFIED web");
}

#[tokio::test]
async fn one_object_can_be_watched_by_its_name() {
    let server = TestServer::with_pods().await;
    let mut watch = server
        .open("GET", "/api/v1/namespaces/default/pods/web?watch=1", "")
        .await;
    assert_eq!(watch.change().await, "ADDED web");
    server.node.pods.put(pod("default", "db", "db", &["a"]));
    server.node.pods.remove("default", "web");
    assert_eq!(watch.change().await, "DELETED web");
}

#[tokio::test]
async fn rows_of_a_watch_bring_their_columns_once() {
    let server = TestServer::with_pods().await;
    let accept = "Accept: application/json;as=Table;v=v1;g=meta.k8s.io\r\n";
    let mut watch = server
        .open("GET", "/api/v1/namespaces/default/pods?watch=1", accept)
        .await;
    let (_, _, first) = watch.event().await;
    assert_eq!(
        (&first["kind"], &first["rows"][0]["cells"][0]),
        (&json!("Table"), &json!("db"))
    );
    assert!(!first["columnDefinitions"].as_array().unwrap().is_empty());
    let (_, _, second) = watch.event().await;
    assert_eq!(second["rows"][0]["cells"][0], "web");
    assert_eq!(second["columnDefinitions"], json!([]));
}

#[tokio::test(start_paused = true)]
async fn a_timeout_ends_a_watch_with_a_bookmark_if_wanted() {
    let server = TestServer::with_pods().await;
    for (bookmarks, last) in [("false", None), ("true", Some("BOOKMARK"))] {
        let path = format!(
            "/api/v1/pods?watch=1&resourceVersion={}&timeoutSeconds=300\
             &allowWatchBookmarks={bookmarks}",
            FIRST + 3
        );
        let reply = server.get(&path).await;
        let event: Option<serde_json::Value> = serde_json::from_str(&reply.body).ok();
        assert_eq!(
            event.as_ref().and_then(|event| event["type"].as_str()),
            last
        );
        if let Some(event) = event {
            let version = (FIRST + 3).to_string();
            assert_eq!(
                event["object"]["metadata"],
                json!({ "resourceVersion": version })
            );
        }
    }
}

#[tokio::test]
async fn watches_end_when_the_agent_stops() {
    let server = TestServer::with_pods().await;
    let path = format!("/api/v1/pods?watch=1&resourceVersion={}", FIRST + 3);
    let mut watch = server.open("GET", &path, "").await;
    server.stop().await;
    assert_eq!(watch.piece().await, None);
}

#[tokio::test]
async fn a_slow_reader_skips_states_and_holds_nobody_up() {
    let server = TestServer::with_pods().await;
    let path = format!("/api/v1/pods?watch=1&resourceVersion={}", FIRST + 3);
    let mut slow = server.open("GET", &path, "").await;
    let mut quick = server.open("GET", &path, "").await;
    const CHANGES: u64 = 4_000;
    for change in 1..=CHANGES {
        server.node.pods.put(pod("default", "web", "web", &["a"]));
        let version = (FIRST + 3 + change).to_string();
        assert_eq!(
            quick.event().await.2["metadata"]["resourceVersion"],
            version
        );
    }
    let last = (FIRST + 3 + CHANGES).to_string();
    let mut seen = 1;
    while slow.event().await.2["metadata"]["resourceVersion"] != last {
        seen += 1;
    }
    assert!(
        seen < CHANGES,
        "{seen} events were kept for the slow reader"
    );
}

#[tokio::test]
async fn a_watch_ends_when_its_reader_goes() {
    let server = TestServer::with_pods().await;
    let watch = server.open("GET", "/api/v1/pods?watch=1", "").await;
    let readers = || std::sync::Arc::strong_count(&server.node.pods);
    let with_reader = readers();
    drop(watch);
    let gone = async {
        while readers() == with_reader {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), gone)
        .await
        .expect("the watch must be dropped");
}
