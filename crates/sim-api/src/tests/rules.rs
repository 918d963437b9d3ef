//! The scheduler, the node lifecycle and the permissions of nodes.

use std::time::Duration;

use serde_json::json;

use super::{PODS, node_client, pair, pod, pod_on, ready_node};

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn pods_are_bound_once_a_node_is_ready() {
    let (api, _) = pair().await;
    api.create("pods", &pod("web")).unwrap();
    let waits = |found: Option<&serde_json::Value>| {
        found.is_some_and(|pod| pod["status"]["conditions"][0]["reason"] == "Unschedulable")
    };
    api.wait_for(("pods", "", "web"), SECOND, waits)
        .await
        .unwrap();
    api.create("nodes", &ready_node("n")).unwrap();
    let bound =
        |found: Option<&serde_json::Value>| found.is_some_and(|pod| pod["spec"]["nodeName"] == "n");
    api.wait_for(("pods", "", "web"), SECOND, bound)
        .await
        .unwrap();
    let event = &api.list("events")[0];
    assert_eq!(event["message"], "Successfully assigned default/web to n");
    let missing = api
        .wait_for(("pods", "", "db"), SECOND, |found| found.is_some())
        .await;
    assert!(missing.unwrap_err().to_string().contains("pods /db"));
}

#[tokio::test(start_paused = true)]
async fn a_pod_whose_claim_is_missing_is_not_bound() {
    let (api, _) = pair().await;
    api.create("nodes", &ready_node("n")).unwrap();
    let mut claims = pod("claims");
    let claim = json!({ "claimName": "data" });
    claims["spec"]["volumes"] = json!([{ "name": "v", "persistentVolumeClaim": claim }]);
    api.create("pods", &claims).unwrap();
    let says = |found: Option<&serde_json::Value>| {
        found.is_some_and(|pod| {
            pod["status"]["conditions"][0]["message"]
                == "0/1 nodes are available: persistentvolumeclaim \"data\" not found."
        })
    };
    api.wait_for(("pods", "", "claims"), SECOND, says)
        .await
        .unwrap();
    assert!(api.get("pods", "", "claims").unwrap()["spec"]["nodeName"].is_null());
}

#[tokio::test(start_paused = true)]
async fn a_node_is_tainted_until_ready_and_when_its_lease_expires() {
    let (api, _) = pair().await;
    api.configure(|config| config.node_lifecycle = true);
    let node = api
        .create("nodes", &json!({ "metadata": { "name": "n" } }))
        .unwrap();
    assert_eq!(
        node["spec"]["taints"][0]["key"],
        "node.kubernetes.io/not-ready"
    );
    api.patch(
        "nodes/status",
        "",
        "n",
        &json!({ "status": ready_node("n")["status"] }),
    )
    .unwrap();
    let untainted = |found: Option<&serde_json::Value>| {
        found.is_some_and(|node| node["spec"].get("taints").is_none())
    };
    api.wait_for(("nodes", "", "n"), SECOND, untainted)
        .await
        .unwrap();
    let lost = |found: Option<&serde_json::Value>| {
        found.is_some_and(|node| node["status"]["conditions"][0]["status"] == "Unknown")
    };
    api.wait_for(("nodes", "", "n"), 60 * SECOND, lost)
        .await
        .unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_node_changes_only_its_own_objects() {
    let (api, _) = pair().await;
    for name in ["n", "m"] {
        api.create("nodes", &ready_node(name)).unwrap();
        api.create("pods", &pod_on(&format!("on-{name}"), name))
            .unwrap();
    }
    let mut node = node_client(&api, "n").await;
    let status = json!({ "status": { "message": "x" } });
    for (path, code) in [
        ("/api/v1/nodes/n/status".to_owned(), 200),
        ("/api/v1/nodes/m/status".to_owned(), 403),
        (format!("{PODS}/on-n/status"), 200),
        (format!("{PODS}/on-m/status"), 403),
        (format!("{PODS}/on-n"), 403),
    ] {
        assert_eq!(node.patch(&path, &status).await.0, code, "{path}");
    }
    assert_eq!(
        node.delete(&format!("{PODS}/on-m"), &json!({})).await.0,
        403
    );
    assert_eq!(node.post(PODS, &pod_on("own", "n")).await.0, 403);
    let mut mirror = pod_on("static-n", "n");
    mirror["metadata"]["annotations"] = json!({ "kubernetes.io/config.mirror": "hash" });
    assert_eq!(node.post(PODS, &mirror).await.0, 201);
    let options = json!({ "gracePeriodSeconds": 0 });
    assert_eq!(
        node.delete(&format!("{PODS}/static-n"), &options).await.0,
        200
    );
    assert!(api.violations().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_node_reads_what_its_known_pods_reference() {
    let (api, _) = pair().await;
    api.configure(|config| {
        config.authenticate = true;
        config.node_authorization = true;
        config.relations_after = SECOND;
    });
    for name in ["used", "other"] {
        api.create("configmaps", &json!({ "metadata": { "name": name } }))
            .unwrap();
    }
    let mut pod = pod_on("web", "n");
    let used = json!({ "name": "used" });
    pod["spec"]["volumes"] = json!([{ "name": "v", "configMap": used }]);
    api.create("pods", &pod).unwrap();
    let maps = "/api/v1/namespaces/default/configmaps";
    let (used, other) = (format!("{maps}/used"), format!("{maps}/other"));
    let mut node = node_client(&api, "n").await;
    assert_eq!(node.get(&used).await.0, 200);
    let (code, refused) = node.get(&other).await;
    assert_eq!(code, 403);
    assert_eq!(
        refused["message"],
        "configmaps \"other\" is forbidden: User \"system:node:n\" cannot get resource \
         \"configmaps\" in API group \"\" in the namespace \"default\": no relationship found \
         between node 'n' and this object"
    );

    api.restart(crate::Restart::default()).await;
    let mut node = node_client(&api, "n").await;
    assert_eq!(node.get(&used).await.0, 403, "its pods are not known yet");
    tokio::time::sleep(SECOND).await;
    assert_eq!(node.get(&used).await.0, 200);
}

#[tokio::test(start_paused = true)]
async fn pods_get_a_token_volume_if_configured() {
    let (api, mut client) = pair().await;
    api.configure(|config| config.service_account_volumes = true);
    let (_, made) = client.post(PODS, &pod("web")).await;
    let volume = &made["spec"]["volumes"][0];
    assert!(
        volume["name"]
            .as_str()
            .unwrap()
            .starts_with("kube-api-access-")
    );
    let mount = &made["spec"]["containers"][0]["volumeMounts"][0];
    assert_eq!(
        mount["mountPath"],
        "/var/run/secrets/kubernetes.io/serviceaccount"
    );
    let mut without = pod("db");
    without["spec"]["automountServiceAccountToken"] = false.into();
    let (_, made) = client.post(PODS, &without).await;
    assert!(made["spec"].get("volumes").is_none());
    without["metadata"]["name"] = "stranger".into();
    without["spec"]["serviceAccountName"] = "nobody".into();
    assert_eq!(client.post(PODS, &without).await.0, 403);
}

#[tokio::test(start_paused = true)]
async fn services_and_secrets_get_defaults() {
    let (api, _) = pair().await;
    let service =
        |name: &str| json!({ "metadata": { "name": name }, "spec": { "ports": [{ "port": 80 }] } });
    let one = api.create("services", &service("one")).unwrap();
    let two = api.create("services", &service("two")).unwrap();
    assert_ne!(one["spec"]["clusterIP"], two["spec"]["clusterIP"]);
    assert_eq!(one["spec"]["ports"][0]["targetPort"], 80);
    let secret = json!({ "metadata": { "name": "s" }, "stringData": { "a": "b" } });
    let made = api.create("secrets", &secret).unwrap();
    assert_eq!(made["data"], json!({ "a": "Yg==" }));
    assert_eq!(made["type"], "Opaque");
    let fixed = json!({ "metadata": { "name": "fixed" }, "immutable": true, "data": { "a": "b" } });
    api.create("configmaps", &fixed).unwrap();
    let change = api.patch("configmaps", "", "fixed", &json!({ "data": { "a": "c" } }));
    assert_eq!(change.unwrap_err().code, 422);
}

#[tokio::test(start_paused = true)]
async fn ephemeral_containers_are_added_and_never_removed() {
    let (api, mut client) = pair().await;
    api.create("pods", &pod_on("web", "n")).unwrap();
    let path = format!("{PODS}/web/ephemeralcontainers");
    let add = |name: &str, image: &str| json!({ "spec": { "ephemeralContainers": [{ "name": name, "image": image }] } });
    let (code, patched) = client.patch(&path, &add("debug", "tool:1")).await;
    assert_eq!(code, 200);
    assert_eq!(patched["metadata"]["generation"], 2);
    assert_eq!(client.patch(&path, &add("debug", "tool:2")).await.0, 422);
    let (_, both) = client.patch(&path, &add("more", "tool:1")).await;
    assert_eq!(
        both["spec"]["ephemeralContainers"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
}

#[tokio::test(start_paused = true)]
async fn pods_of_a_deleted_node_are_removed_after_a_while() {
    let (api, _) = pair().await;
    api.configure(|config| {
        config.node_lifecycle = true;
        config.pod_cidrs = true;
    });
    let node = api.create("nodes", &ready_node("n")).unwrap();
    assert_eq!(node["spec"]["podCIDRs"], json!(["10.244.0.0/24"]));
    let other = api.create("nodes", &ready_node("m")).unwrap();
    assert_eq!(other["spec"]["podCIDR"], "10.244.1.0/24");
    api.create("pods", &pod_on("web", "n")).unwrap();
    api.delete("nodes", "", "n", None).unwrap();
    tokio::time::sleep(30 * SECOND).await;
    assert!(
        api.get("pods", "", "web").is_some(),
        "the node may come back"
    );
    let gone = |found: Option<&serde_json::Value>| found.is_none();
    api.wait_for(("pods", "", "web"), 20 * SECOND, gone)
        .await
        .unwrap();
    assert!(api.violations().is_empty());
}
