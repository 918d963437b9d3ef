//! Operators' actions on pods, and their results.

use std::time::Duration;

use rubelet_api::status::{ConditionStatus, Phase};
use rubelet_node_state::pod_board::PodEntry;
use rubelet_server::{ActionError, NodeView as _, PodAction, Resource};
use serde_json::{Value, json};

use super::fixture::{NOW, TestView, at, ending, entry, merge, strategic};

fn restart(container: Option<&str>) -> PodAction {
    PodAction::Restart {
        container: container.map(str::to_owned),
    }
}

fn conflict(result: Result<Value, ActionError>) -> String {
    match result {
        Err(ActionError::Conflict(message)) => message,
        other => panic!("{other:?}"),
    }
}

async fn seen(entry: &PodEntry) -> TestView {
    let seen = TestView::new();
    seen.put(entry.clone()).await;
    seen
}

#[tokio::test(start_paused = true)]
async fn a_restart_is_kept_with_the_instances_it_replaces() {
    let entry = entry();
    let seen = seen(&entry).await;
    let answer = seen.act(restart(None)).await.unwrap();
    assert_eq!(
        answer["containers"],
        json!([
            { "name": "proxy", "containerID": "containerd://proxy-0" },
            { "name": "web", "containerID": "containerd://web-0" },
            { "name": "side", "containerID": "containerd://side-0" },
        ])
    );
    assert_eq!(
        (&answer["metadata"]["name"], &answer["askedAt"]),
        (&json!("web-n1"), &json!(NOW))
    );
    let asked = seen.asked(&entry).await;
    let rows: Vec<_> = asked
        .restarts
        .iter()
        .map(|(name, intent)| (&**name, intent.instance.as_ref().unwrap().as_str()))
        .collect();
    assert_eq!(
        rows,
        [("proxy", "proxy-0"), ("side", "side-0"), ("web", "web-0")]
    );
    assert_eq!(asked.restarts["web"].at, at(NOW));
    let events = seen.recorder.board().list();
    let told: Vec<_> = events.iter().map(|(.., event)| &*event.reason).collect();
    assert_eq!(told, ["RestartRequested"; 3]);
}

#[tokio::test(start_paused = true)]
async fn a_container_that_never_ran_is_tried_again_at_once() {
    let mut entry = entry();
    entry.status.containers[1].container_id = "".into();
    let seen = seen(&entry).await;
    let answer = seen.act(restart(Some("web"))).await.unwrap();
    assert_eq!(answer["containers"], json!([{ "name": "web" }]));
    assert_eq!(seen.asked(&entry).await.restarts["web"].instance, None);
}

#[tokio::test(start_paused = true)]
async fn what_can_not_be_restarted_is_refused_with_the_reason() {
    let entry = entry();
    let seen = seen(&entry).await;
    assert_eq!(
        conflict(seen.act(restart(Some("setup"))).await),
        "\"setup\" is an init container: it runs again only in a new sandbox"
    );
    assert_eq!(
        seen.act(restart(Some("x"))).await,
        Err(ActionError::BadRequest(
            "pod \"web-n1\" has no container \"x\"; it has proxy, web, side".to_owned()
        ))
    );
    let mut ended = entry.clone();
    ended.status.phase = Phase::Succeeded;
    seen.put(ended).await;
    assert_eq!(
        conflict(seen.act(restart(None)).await),
        "pod \"web-n1\" has ended (Succeeded) and is not started again; edit its manifest to \
         run it again"
    );
    seen.put(ending(30)).await;
    let message = conflict(seen.act(restart(None)).await);
    assert!(message.contains("is being removed"), "{message}");
    assert!(seen.asked(&entry).await.restarts.is_empty());
    seen.board.remove(&entry.pod.uid);
    assert_eq!(seen.act(restart(None)).await, Err(ActionError::NotFound));
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_a_manifest_wants_is_not_deleted() {
    let entry = entry();
    let seen = seen(&entry).await;
    let delete = || seen.act(PodAction::Delete { grace: Some(0) });
    let message = conflict(delete().await);
    assert!(
        message.starts_with("the pod is kept by its source (file)"),
        "{message}"
    );
    seen.keep("/m/web.yaml", "file", &entry);
    assert_eq!(
        conflict(delete().await),
        "the pod is kept by manifest /m/web.yaml: remove or move that file"
    );
    seen.keep("https://m.example/web", "http", &entry);
    assert_eq!(
        conflict(delete().await),
        "the pod is kept by the manifest URL https://m.example/web: take it out of what is served \
         there"
    );
    assert_eq!(seen.asked(&entry).await.grace, None);
}

#[tokio::test(start_paused = true)]
async fn the_grace_of_an_ending_pod_only_shrinks() {
    let entry = ending(30);
    let seen = seen(&entry).await;
    for (grace, kept, shown) in [
        (None, None, 30),
        (Some(40), None, 30),
        (Some(10), Some(10), 10),
        (Some(20), Some(10), 10),
        (Some(0), Some(1), 1),
    ] {
        let pod = seen.act(PodAction::Delete { grace }).await.unwrap();
        assert_eq!(pod["metadata"]["deletionGracePeriodSeconds"], shown);
        let asked = seen.asked(&entry).await.grace;
        assert_eq!(asked, kept.map(Duration::from_secs), "{grace:?}");
    }
    // A shorter grace counts from when it was asked for.
    assert_eq!(
        seen.pod()["metadata"]["deletionTimestamp"],
        "2026-03-01T12:00:01Z"
    );
}

#[tokio::test(start_paused = true)]
async fn conditions_are_kept_and_seen_at_once() {
    let entry = entry();
    let seen = seen(&entry).await;
    let version = seen.view.list(Resource::Pods).resource_version;
    let patch = json!({ "status": { "conditions": [
        { "type": "lb/up", "status": "False", "reason": "Wait" },
        { "type": "a", "status": "True" },
    ] } });
    let pod = seen.act(PodAction::PatchStatus(strategic(&patch))).await;
    let shown = |pod: &Value| -> Vec<String> {
        let conditions = pod["status"]["conditions"].as_array().unwrap();
        let words = conditions.iter().map(|one| {
            format!(
                "{}={} {}",
                one["type"].as_str().unwrap(),
                one["status"].as_str().unwrap(),
                one["lastTransitionTime"].as_str().unwrap()
            )
        });
        words.collect()
    };
    let own = [
        "Initialized=True 2026-03-01T11:00:05Z",
        "Ready=False 2026-03-01T11:00:05Z",
    ];
    let all = |asked: &[&'static str]| [asked, &own].concat();
    assert_eq!(
        shown(&pod.unwrap()),
        all(&[
            "lb/up=False 2026-03-01T12:00:00Z",
            "a=True 2026-03-01T12:00:00Z"
        ])
    );
    // Watchers are notified without waiting for the pod's task.
    seen.until(|| seen.view.list(Resource::Pods).resource_version > version)
        .await;

    tokio::time::advance(Duration::from_secs(10)).await;
    let patch = json!({ "status": { "conditions": [
        { "type": "lb/up", "status": "True" },
        { "type": "a", "status": "True", "reason": "Still" },
    ] } });
    seen.act(PodAction::PatchStatus(merge(&patch)))
        .await
        .unwrap();
    assert_eq!(
        shown(&seen.pod()),
        all(&[
            "lb/up=True 2026-03-01T12:00:10Z",
            "a=True 2026-03-01T12:00:00Z"
        ])
    );
    let patch = json!({ "status": { "conditions": [{ "type": "lb/up", "status": "True" }] } });
    seen.act(PodAction::PatchStatus(merge(&patch)))
        .await
        .unwrap();
    assert_eq!(
        shown(&seen.pod()),
        all(&["lb/up=True 2026-03-01T12:00:10Z"])
    );
    let asked = seen.asked(&entry).await;
    let kept = &asked.conditions[0];
    assert_eq!(
        (
            &*kept.kind,
            kept.status,
            &*kept.reason,
            asked.conditions.len()
        ),
        ("lb/up", ConditionStatus::True, "", 1)
    );

    let phase = json!({ "status": { "phase": "Failed" } });
    let error = seen.act(PodAction::PatchStatus(merge(&phase))).await;
    assert!(matches!(error, Err(ActionError::Invalid(_))), "{error:?}");
}

#[tokio::test(start_paused = true)]
async fn conditions_that_two_clients_set_at_once_are_both_kept() {
    let entry = entry();
    let seen = seen(&entry).await;
    let set = |kind: &str| {
        let patch = json!({ "status": { "conditions": [{ "type": kind, "status": "True" }] } });
        seen.act(PodAction::PatchStatus(strategic(&patch)))
    };
    let (a, b, c) = tokio::join!(set("a"), set("b"), set("c"));
    assert!(a.is_ok() && b.is_ok() && c.is_ok());
    assert_eq!(seen.asked(&entry).await.conditions.len(), 3);
}

#[tokio::test(start_paused = true)]
async fn ephemeral_containers_are_completed_and_kept() {
    let entry = entry();
    let seen = seen(&entry).await;
    let add = |container: Value| {
        let patch = json!({ "spec": { "ephemeralContainers": [container] } });
        seen.act(PodAction::AddEphemeral(strategic(&patch)))
    };
    let look = json!({ "name": "look", "image": "busybox", "targetContainerName": "web" });
    let pod = add(look.clone()).await.unwrap();
    let shown = &pod["spec"]["ephemeralContainers"][0];
    assert_eq!(
        (
            &shown["name"],
            &shown["targetContainerName"],
            &shown["imagePullPolicy"]
        ),
        (&json!("look"), &json!("web"), &json!("Always"))
    );
    add(json!({ "name": "again", "image": "busybox:1" }))
        .await
        .unwrap();
    // What is there already and has not changed may be sent again.
    add(look).await.unwrap();
    let kept = seen.asked(&entry).await.ephemeral.clone();
    assert_eq!(kept.len(), 2);
    assert_eq!(
        seen.pod()["spec"]["ephemeralContainers"][1]["name"],
        "again"
    );
    for (container, message) in [
        (
            json!({ "name": "look", "image": "other" }),
            "existing ephemeral containers \"look\" may not be changed",
        ),
        (
            json!({ "name": "web", "image": "x" }),
            "spec.ephemeralContainers[2].name",
        ),
        (
            json!({ "name": "A b", "image": "x" }),
            "spec.ephemeralContainers[2].name",
        ),
        (
            json!({ "name": "c", "image": "x", "targetContainerName": "nobody" }),
            "targetContainerName",
        ),
        (
            json!({ "name": "c", "image": "x", "livenessProbe": {} }),
            "livenessProbe",
        ),
    ] {
        let error = add(container).await.unwrap_err();
        assert!(matches!(error, ActionError::Invalid(_)), "{error:?}");
        assert!(error.to_string().contains(message), "{error}");
    }
    assert_eq!(seen.asked(&entry).await.ephemeral, kept);
    let mut ended = entry.clone();
    ended.status.phase = Phase::Failed;
    seen.put(ended).await;
    let message = conflict(add(json!({ "name": "late", "image": "x" })).await);
    assert!(message.contains("has ended"), "{message}");
}

#[tokio::test(start_paused = true)]
async fn a_disk_that_refuses_is_the_nodes_fault() {
    let entry = entry();
    let seen = seen(&entry).await;
    std::fs::remove_dir(seen.directory.path()).unwrap();
    let error = seen.act(restart(None)).await.unwrap_err();
    assert!(matches!(error, ActionError::Internal(_)), "{error:?}");
    assert!(seen.asked(&entry).await.restarts.is_empty());
    assert!(seen.recorder.board().list().is_empty());
    std::fs::create_dir(seen.directory.path()).unwrap();
}
