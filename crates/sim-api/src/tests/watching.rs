//! Watches.

use std::time::Duration;

use serde_json::json;

use super::{TestClient, pair, pod, pod_on, server};

#[tokio::test(start_paused = true)]
async fn a_watch_sends_objects_that_enter_or_leave_its_selection() {
    let (api, client) = pair().await;
    api.configure(|config| config.scheduler = false);
    let since = api.version();
    let path =
        format!("/api/v1/pods?watch=1&fieldSelector=spec.nodeName=n&resourceVersion={since}");
    let mut lines = client.watch(&path).await;
    api.create("pods", &pod("free")).unwrap();
    api.create("pods", &pod_on("web", "n")).unwrap();
    api.create("pods", &pod_on("other", "m")).unwrap();
    api.bind("default", "free", "n").unwrap();
    api.patch(
        "pods/status",
        "",
        "web",
        &json!({ "status": { "phase": "Running" } }),
    )
    .unwrap();
    api.delete("pods", "", "web", Some(0)).unwrap();
    for (what, name) in [
        ("ADDED", "web"),
        ("ADDED", "free"),
        ("MODIFIED", "web"),
        ("DELETED", "web"),
    ] {
        assert_eq!(
            lines.next_type_and_name().await,
            (what.to_owned(), name.to_owned())
        );
    }
    assert!(lines.is_silent(Duration::from_secs(30)).await);
}

#[tokio::test(start_paused = true)]
async fn a_watch_can_start_with_a_list_that_a_bookmark_ends() {
    let (api, client) = pair().await;
    api.create("pods", &pod("web")).unwrap();
    let path = "/api/v1/pods?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan\
                &allowWatchBookmarks=true";
    let mut lines = client.watch(path).await;
    assert_eq!(
        lines.next_type_and_name().await,
        ("ADDED".to_owned(), "web".to_owned())
    );
    let mark = lines.next().await.unwrap();
    assert_eq!(mark["type"], "BOOKMARK");
    let annotations = &mark["object"]["metadata"]["annotations"];
    assert_eq!(annotations["k8s.io/initial-events-end"], "true");
    api.create("pods", &pod("db")).unwrap();
    assert_eq!(
        lines.next_type_and_name().await,
        ("ADDED".to_owned(), "db".to_owned())
    );
    // Then a bookmark every minute.
    tokio::time::advance(Duration::from_secs(61)).await;
    let mut last = lines.next().await.unwrap();
    while last["type"] != "BOOKMARK" {
        last = lines.next().await.unwrap();
    }
    let version = last["object"]["metadata"]["resourceVersion"]
        .as_str()
        .unwrap();
    assert_eq!(version, api.version().to_string());
}

#[tokio::test(start_paused = true)]
async fn an_older_server_does_not_support_lists_in_watches() {
    let (api, mut client) = pair().await;
    api.configure(|config| config.streaming_lists = false);
    let path = "/api/v1/pods?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan";
    let (code, error) = client.get(path).await;
    assert_eq!((code, error["reason"].as_str()), (422, Some("Invalid")));
}

#[tokio::test(start_paused = true)]
async fn a_watch_from_a_compacted_version_expires() {
    let api = server().await;
    let since = api.version();
    api.create("pods", &pod("web")).unwrap();
    api.compact();
    let path = format!("/api/v1/pods?watch=1&resourceVersion={since}");
    let mut lines = TestClient::new(&api).await.watch(&path).await;
    let error = lines.next().await.unwrap();
    assert_eq!(error["type"], "ERROR");
    assert_eq!(
        (&error["object"]["code"], &error["object"]["reason"]),
        (&json!(410), &json!("Expired"))
    );
    assert!(lines.next().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_watch_ends_after_its_timeout() {
    let (api, client) = pair().await;
    let path = format!(
        "/api/v1/pods?watch=1&timeoutSeconds=5&resourceVersion={}",
        api.version()
    );
    let start = tokio::time::Instant::now();
    let mut lines = client.watch(&path).await;
    while lines.next().await.is_some() {}
    assert_eq!(start.elapsed().as_secs(), 5);
}

#[tokio::test(start_paused = true)]
async fn one_object_can_be_watched_by_its_name() {
    let (api, client) = pair().await;
    api.create("pods", &pod("web")).unwrap();
    api.create("pods", &pod("db")).unwrap();
    let path = "/api/v1/namespaces/default/pods?watch=1&fieldSelector=metadata.name%3Dweb";
    let mut lines = client.watch(path).await;
    assert_eq!(
        lines.next_type_and_name().await,
        ("ADDED".to_owned(), "web".to_owned())
    );
    api.delete("pods", "", "db", Some(0)).unwrap();
    api.delete("pods", "", "web", Some(0)).unwrap();
    while lines.next_type_and_name().await != ("DELETED".to_owned(), "web".to_owned()) {}
}
