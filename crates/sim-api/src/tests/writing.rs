//! Creation, updates and patches: what is stored and what is refused.

use http::Method;
use serde_json::json;

use super::{PODS, node_client, pair, pod, pod_on};

#[tokio::test(start_paused = true)]
async fn a_created_pod_gets_defaults_and_is_pending() {
    let (_api, mut client) = pair().await;
    let (code, made) = client.post(PODS, &pod("web")).await;
    assert_eq!(code, 201);
    assert_eq!(
        made["status"],
        json!({ "phase": "Pending", "qosClass": "BestEffort" })
    );
    assert_eq!(made["metadata"]["generation"], 1);
    assert_eq!(made["metadata"]["uid"].as_str().unwrap().len(), 36);
    assert_eq!(made["spec"]["serviceAccountName"], "default");
    assert_eq!(made["spec"]["tolerations"].as_array().unwrap().len(), 2);
    let (code, error) = client.post(PODS, &pod("web")).await;
    assert_eq!(
        (code, error["reason"].as_str()),
        (409, Some("AlreadyExists"))
    );
    assert_eq!(error["message"], r#"pods "web" already exists"#);
}

#[tokio::test(start_paused = true)]
async fn names_are_generated_and_checked() {
    let (_api, mut client) = pair().await;
    let mut pod = pod("x");
    pod["metadata"] = json!({ "generateName": "web-" });
    let (_, one) = client.post(PODS, &pod).await;
    let (_, two) = client.post(PODS, &pod).await;
    let name = one["metadata"]["name"].as_str().unwrap();
    assert!(name.starts_with("web-") && name.len() == 9, "{name}");
    assert_ne!(one["metadata"]["name"], two["metadata"]["name"]);
    for (metadata, code) in [
        (json!({}), 422),
        (json!({ "name": "A_b" }), 422),
        (json!({ "name": "a", "namespace": "other" }), 400),
    ] {
        pod["metadata"] = metadata;
        assert_eq!(client.post(PODS, &pod).await.0, code, "{}", pod["metadata"]);
    }
    let (code, error) = client
        .post("/api/v1/namespaces/nowhere/pods", &super::pod("a"))
        .await;
    assert_eq!(code, 404);
    assert_eq!(error["message"], r#"namespaces "nowhere" not found"#);
}

#[tokio::test(start_paused = true)]
async fn a_status_changes_by_its_subresource_only() {
    let (api, mut client) = pair().await;
    let made = api.create("pods", &pod_on("web", "n")).unwrap();
    let path = format!("{PODS}/web");
    let patch = json!({ "metadata": { "labels": { "a": "b" } }, "status": { "phase": "Running" } });
    let (_, patched) = client.patch(&path, &patch).await;
    assert_eq!(patched["status"]["phase"], "Pending");
    assert_eq!(patched["metadata"]["labels"]["a"], "b");
    let patch = json!({ "spec": { "nodeName": "m" }, "status": { "phase": "Running" } });
    let (code, patched) = client.patch(&format!("{path}/status"), &patch).await;
    assert_eq!(code, 200);
    assert_eq!(patched["status"]["phase"], "Running");
    assert_eq!(patched["spec"], made["spec"]);
    assert_eq!(patched["metadata"]["generation"], 1);
}

#[tokio::test(start_paused = true)]
async fn conditions_of_others_are_kept_by_a_strategic_patch() {
    let (api, mut client) = pair().await;
    api.create("pods", &pod_on("web", "n")).unwrap();
    let path = format!("{PODS}/web/status");
    for condition in ["Ready", "example.com/gate"] {
        let patch =
            json!({ "status": { "conditions": [{ "type": condition, "status": "True" }] } });
        assert_eq!(client.patch(&path, &patch).await.0, 200);
    }
    let pod = api.get("pods", "default", "web").unwrap();
    let types = pod["status"]["conditions"].as_array().unwrap().iter();
    let types: Vec<_> = types.map(|condition| condition["type"].clone()).collect();
    // A new entry comes before those that the patch does not name.
    assert_eq!(types, ["example.com/gate", "Ready"]);
}

#[tokio::test(start_paused = true)]
async fn preconditions_are_enforced() {
    let (api, mut client) = pair().await;
    let made = api.create("pods", &pod_on("web", "n")).unwrap();
    let path = format!("{PODS}/web/status");
    let patch = |metadata| json!({ "metadata": metadata, "status": { "message": "x" } });
    let (code, error) = client.patch(&path, &patch(json!({ "uid": "other" }))).await;
    assert_eq!((code, error["reason"].as_str()), (422, Some("Invalid")));
    assert!(
        error["message"].as_str().unwrap().contains("metadata.uid"),
        "{error}"
    );
    let (code, _) = client
        .patch(&path, &patch(json!({ "uid": made["metadata"]["uid"] })))
        .await;
    assert_eq!(code, 200);
    let (code, error) = client
        .patch(&path, &patch(json!({ "resourceVersion": "1" })))
        .await;
    assert_eq!((code, error["reason"].as_str()), (409, Some("Conflict")));
    let (code, error) = client.put(&format!("{PODS}/web"), &made).await;
    assert_eq!(code, 409, "an old version");
    let message = error["message"].as_str().unwrap();
    assert!(
        message.starts_with(r#"Operation cannot be fulfilled on pods "web""#),
        "{message}"
    );
}

#[tokio::test(start_paused = true)]
async fn an_update_without_changes_has_no_new_version() {
    let (api, mut client) = pair().await;
    api.create("pods", &pod_on("web", "n")).unwrap();
    let patch = json!({ "status": { "message": "x" } });
    let path = format!("{PODS}/web/status");
    let (_, once) = client.patch(&path, &patch).await;
    let (_, twice) = client.patch(&path, &patch).await;
    assert_eq!(once, twice);
}

#[tokio::test(start_paused = true)]
async fn patch_types_are_supported_and_others_refused() {
    let (_api, mut client) = pair().await;
    client.post(PODS, &pod("web")).await;
    let path = format!("{PODS}/web");
    for (media_type, body, code) in [
        (
            "application/merge-patch+json",
            r#"{"metadata":{"labels":{"a":"1"}}}"#,
            200,
        ),
        (
            "application/json-patch+json",
            r#"[{"op":"replace","path":"/metadata/labels/a","value":"2"}]"#,
            200,
        ),
        (
            "application/json-patch+json",
            r#"[{"op":"remove","path":"/nowhere"}]"#,
            422,
        ),
        ("application/strategic-merge-patch+json", "[]", 400),
        ("application/apply-patch+yaml", "{}", 415),
    ] {
        let answer = client
            .send(Method::PATCH, &path, media_type, body.to_owned())
            .await;
        assert_eq!(answer.0, code, "{media_type} {body}");
    }
    let (_, pod) = client.get(&path).await;
    assert_eq!(pod["metadata"]["labels"]["a"], "2");
}

#[tokio::test(start_paused = true)]
async fn leases_are_created_and_renewed_by_put() {
    let (api, _) = pair().await;
    let mut node = node_client(&api, "n").await;
    let leases = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";
    let lease = json!({ "metadata": { "name": "n" }, "spec": { "holderIdentity": "n" } });
    let (code, mut made) = node.post(leases, &lease).await;
    assert_eq!(code, 201);
    made["spec"]["renewTime"] = "2026-01-01T00:00:00.000000Z".into();
    let (code, renewed) = node.put(&format!("{leases}/n"), &made).await;
    assert_eq!(code, 200);
    assert_ne!(
        renewed["metadata"]["resourceVersion"],
        made["metadata"]["resourceVersion"]
    );
    let (code, _) = node.put(&format!("{leases}/n"), &made).await;
    assert_eq!(code, 409);
    let (code, _) = node.put(&format!("{leases}/n"), &lease).await;
    assert_eq!(code, 422, "without a version");
}

#[tokio::test(start_paused = true)]
async fn events_can_be_written_in_one_group_and_read_in_another() {
    let (_api, mut client) = pair().await;
    let event = json!({
        "metadata": { "name": "web.1" },
        "regarding": { "kind": "Pod", "name": "web", "namespace": "default" },
        "reason": "Pulled", "note": "done", "type": "Normal", "action": "Pull",
        "eventTime": "2026-01-01T00:00:00.000000Z", "reportingController": "kubelet",
        "reportingInstance": "n",
    });
    let (code, _) = client
        .post("/apis/events.k8s.io/v1/namespaces/default/events", &event)
        .await;
    assert_eq!(code, 201);
    let path = "/api/v1/namespaces/default/events?fieldSelector=involvedObject.name=web";
    let (_, list) = client.get(path).await;
    assert_eq!(list["items"][0]["message"], "done");
    let patch = json!({ "count": 2, "message": "done again" });
    client
        .patch("/api/v1/namespaces/default/events/web.1", &patch)
        .await;
    let path = "/apis/events.k8s.io/v1/namespaces/default/events/web.1";
    let (_, event) = client.get(path).await;
    assert_eq!(
        (&event["note"], &event["deprecatedCount"]),
        (&json!("done again"), &json!(2))
    );
}

#[tokio::test(start_paused = true)]
async fn invalid_requests_are_refused() {
    let (api, mut client) = pair().await;
    api.configure(|config| config.max_body = 1000);
    let huge = "x".repeat(1001);
    for (body, code) in [
        ("{", 400),
        ("[]", 400),
        (r#"{"kind":"Node"}"#, 400),
        (&huge, 413),
    ] {
        let answer = client
            .send(Method::POST, PODS, "application/json", body.to_owned())
            .await;
        assert_eq!(answer.0, code, "{body:.20}");
        assert_eq!(answer.1["kind"], "Status");
    }
    for (media_type, code) in [
        ("application/vnd.kubernetes.protobuf", 400),
        ("text/plain", 415),
    ] {
        let body = "k8s".to_owned();
        assert_eq!(
            client.send(Method::POST, PODS, media_type, body).await.0,
            code
        );
    }
    assert_eq!(client.get("/api/v1/things").await.0, 404);
    assert_eq!(
        client
            .post("/api/v1/namespaces/default/pods/web", &pod("web"))
            .await
            .0,
        405
    );
}

#[tokio::test(start_paused = true)]
async fn null_is_accepted_from_kubectl_and_refused_from_the_agent() {
    let api = super::server().await;
    let mut made = pod("web");
    made["metadata"]["creationTimestamp"] = json!(null);
    let client = super::TestClient::new(&api).await;
    let (code, error) = client.named("rubelet/1.0").post(PODS, &made).await;
    assert_eq!(code, 400);
    assert_eq!(
        error["message"],
        "\"metadata.creationTimestamp\" is null in the body of a create request for pods: leave the \
         field out; only in a merge patch null has a meaning"
    );
    let violations = api.violations();
    assert_eq!(violations.len(), 1, "{violations:?}");
    let client = super::TestClient::new(&api).await;
    assert_eq!(client.named("kubectl/v1.36").post(PODS, &made).await.0, 201);
    let mut client = super::TestClient::new(&api).await.named("rubelet/1.0");
    let path = format!("{PODS}/web");
    let patch = json!({ "metadata": { "labels": { "app": null } } });
    assert_eq!(client.patch(&path, &patch).await.0, 200);
    assert_eq!(api.violations().len(), 1);
}
