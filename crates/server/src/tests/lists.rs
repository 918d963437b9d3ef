//! Discovery, lists, single objects, tables and errors.

use serde_json::json;

use super::fixture::TestServer;
use crate::{
    Object,
    testing::{FIRST, pod},
};

#[tokio::test]
async fn clients_can_discover_what_there_is() {
    let server = TestServer::start().await;
    let version = server.get("/version").await.json();
    assert_eq!(version["major"], "1");
    assert!(
        version["gitVersion"]
            .as_str()
            .unwrap()
            .starts_with("v1.36.0+rubelet.")
    );
    assert_eq!(server.get("/api").await.json()["versions"], json!(["v1"]));
    let groups = server.get("/apis").await.json();
    assert_eq!(
        groups["groups"][0]["preferredVersion"]["groupVersion"],
        "node.rubelet.dev/v1alpha1"
    );
    assert_eq!(
        server.get("/apis/node.rubelet.dev").await.json()["kind"],
        "APIGroup"
    );
    let core = server.get("/api/v1").await.json();
    assert_eq!(core["groupVersion"], "v1");
    let names: Vec<_> = core["resources"]
        .as_array()
        .unwrap()
        .iter()
        .map(|r| &r["name"])
        .collect();
    assert_eq!(
        names,
        [
            "events",
            "pods",
            "pods/attach",
            "pods/ephemeralcontainers",
            "pods/exec",
            "pods/log",
            "pods/portforward",
            "pods/status"
        ]
    );
    assert_eq!(core["resources"][1]["shortNames"], json!(["po"]));
    assert_eq!(
        core["resources"][1]["verbs"],
        json!(["delete", "get", "list", "watch"])
    );
    assert_eq!(
        core["resources"][7]["verbs"],
        json!(["get", "patch", "update"])
    );
    let node = server.get("/apis/node.rubelet.dev/v1alpha1").await.json();
    assert_eq!(node["groupVersion"], "node.rubelet.dev/v1alpha1");
    assert_eq!(node["resources"][0]["namespaced"], false);
    let names = ["pods/net", "pods/restart", "pods/why"];
    for (place, name) in (1..).zip(names) {
        assert_eq!(node["resources"][place]["name"], name);
    }
    let config = server.get("/configz").await.json();
    assert_eq!(config["kubeletconfig"]["kind"], "KubeletConfiguration");
}

#[tokio::test]
async fn lists_are_complete_objects_with_a_version() {
    let server = TestServer::with_pods().await;
    let reply = server.get("/api/v1/pods?limit=1").await;
    let list = reply.json();
    assert_eq!((reply.code, list["kind"].as_str()), (200, Some("PodList")));
    assert_eq!(list["apiVersion"], "v1");
    assert_eq!(
        list["metadata"],
        json!({ "resourceVersion": (FIRST + 3).to_string() })
    );
    assert_eq!(reply.names(), ["db", "web", "dns"]);
    assert_eq!(
        list["items"][1]["metadata"]["resourceVersion"],
        (FIRST + 1).to_string()
    );
    assert_eq!(list["items"][1]["kind"], "Pod");
    assert_eq!(server.get("/pods").await.body, reply.body);
    assert_eq!(
        server.get("/api/v1/namespaces/default/pods").await.names(),
        ["db", "web"]
    );
    assert_eq!(
        server.get("/api/v1/namespaces/empty/pods").await.names(),
        [""; 0]
    );
    let one = server
        .get("/api/v1/namespaces/default/pods/web")
        .await
        .json();
    assert_eq!(
        (&one["kind"], &one["metadata"]["name"]),
        (&json!("Pod"), &json!("web"))
    );
}

#[tokio::test]
async fn events_and_manifests_are_listed_too() {
    let server = TestServer::start().await;
    let event = json!({ "metadata": { "name": "web.1", "namespace": "default" },
                        "involvedObject": { "kind": "Pod", "name": "web" }, "type": "Warning" });
    server
        .node
        .events
        .put(Object::new("default", "web.1", move || event.clone()));
    let manifest = json!({ "metadata": { "name": "web.yaml" }, "status": { "state": "Ok" } });
    server
        .node
        .manifests
        .put(Object::new("", "web.yaml", move || manifest.clone()));
    assert_eq!(
        server
            .get("/api/v1/namespaces/default/events")
            .await
            .names(),
        ["web.1"]
    );
    assert_eq!(
        server
            .get("/api/v1/events?fieldSelector=involvedObject.name%3Dother")
            .await
            .names(),
        [""; 0]
    );
    let list = server
        .get("/apis/node.rubelet.dev/v1alpha1/manifests")
        .await
        .json();
    assert_eq!(list["kind"], "ManifestList");
    assert_eq!(list["items"][0]["apiVersion"], "node.rubelet.dev/v1alpha1");
    let one = server
        .get("/apis/node.rubelet.dev/v1alpha1/manifests/web.yaml")
        .await
        .json();
    assert_eq!(one["status"]["state"], "Ok");
}

#[tokio::test]
async fn selectors_choose_objects() {
    let server = TestServer::with_pods().await;
    for (query, names) in [
        ("labelSelector=app%3Dweb", vec!["web"]),
        ("labelSelector=app+in+(web,dns)", vec!["web", "dns"]),
        ("labelSelector=!app", vec![]),
        ("fieldSelector=metadata.name%3Ddb", vec!["db"]),
        ("fieldSelector=metadata.namespace!%3Ddefault", vec!["dns"]),
        (
            "fieldSelector=status.phase%3DRunning,spec.nodeName%3Dn1&labelSelector=app",
            vec!["db", "web", "dns"],
        ),
    ] {
        assert_eq!(
            server.get(&format!("/api/v1/pods?{query}")).await.names(),
            names,
            "{query}"
        );
    }
}

#[tokio::test]
async fn tables_have_kubectls_columns_and_rows() {
    let server = TestServer::with_pods().await;
    let accept = "Accept: application/json;as=Table;v=v1;g=meta.k8s.io,application/json\r\n";
    let table = server
        .request("GET", "/api/v1/namespaces/default/pods", accept)
        .await
        .json();
    assert_eq!(
        (&table["kind"], &table["apiVersion"]),
        (&json!("Table"), &json!("meta.k8s.io/v1"))
    );
    let columns = table["columnDefinitions"].as_array().unwrap();
    let names: Vec<_> = columns
        .iter()
        .map(|c| c["name"].as_str().unwrap())
        .collect();
    assert_eq!(names[..5], ["Name", "Ready", "Status", "Restarts", "Age"]);
    assert_eq!(
        (&columns[4]["priority"], &columns[5]["priority"]),
        (&json!(0), &json!(1))
    );
    let rows = table["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 2);
    assert_eq!(
        rows[0]["cells"].as_array().unwrap()[..3],
        ["db", "0/2", "Running"]
    );
    assert_eq!(rows[0]["object"]["kind"], "PartialObjectMetadata");
    assert_eq!(rows[0]["object"]["metadata"]["name"], "db");
    assert!(rows[0]["object"]["spec"].is_null());

    let single = "/api/v1/namespaces/default/pods/web?includeObject=Object";
    let table = server.request("GET", single, accept).await.json();
    assert_eq!(table["rows"][0]["object"]["spec"]["nodeName"], "n1");
    let events = server
        .request("GET", "/api/v1/events?includeObject=None", accept)
        .await
        .json();
    assert_eq!(events["columnDefinitions"][0]["name"], "Last Seen");
    assert_eq!(events["rows"], json!([]));
}

#[tokio::test]
async fn long_lists_arrive_whole() {
    let server = TestServer::start().await;
    for number in 0..500 {
        server
            .node
            .pods
            .put(pod("default", &format!("pod-{number:03}"), "many", &["a"]));
    }
    let names = server.get("/api/v1/pods").await.names();
    assert_eq!((names.len(), names[499].as_str()), (500, "pod-499"));
}

#[tokio::test]
async fn mistakes_are_answered_with_a_status() {
    let server = TestServer::with_pods().await;
    for (path, code, reason, message) in [
        (
            "/api/v1/namespaces/default/pods/x",
            404,
            "NotFound",
            r#"pods "x" not found"#,
        ),
        (
            "/api/v1/namespaces/kube-system/pods/web",
            404,
            "NotFound",
            r#"pods "web" not found"#,
        ),
        (
            "/apis/node.rubelet.dev/v1alpha1/manifests/x",
            404,
            "NotFound",
            r#"manifests.node.rubelet.dev "x" not found"#,
        ),
        (
            "/api/v1/nodes",
            404,
            "NotFound",
            "the server could not find the requested resource",
        ),
        (
            "/api/v1/pods?labelSelector=a%3D%3D%3D",
            400,
            "BadRequest",
            "unable to parse",
        ),
        (
            "/api/v1/pods?fieldSelector=spec.image%3Dx",
            400,
            "BadRequest",
            "not supported",
        ),
        (
            "/api/v1/pods?continue=abc",
            400,
            "BadRequest",
            "complete lists only",
        ),
        (
            "/api/v1/pods?resourceVersion=x",
            400,
            "BadRequest",
            "resourceVersion: Invalid value",
        ),
        (
            "/api/v1/pods?resourceVersion=9999",
            410,
            "Expired",
            "resource version 9999",
        ),
        (
            "/api/v1/pods?resourceVersion=1001&resourceVersionMatch=Exact",
            410,
            "Expired",
            "the current one is 1003",
        ),
    ] {
        let reply = server.get(path).await;
        let status = reply.json();
        assert_eq!(
            (reply.code, status["kind"].as_str()),
            (code, Some("Status")),
            "{path}"
        );
        assert_eq!(
            (&status["code"], &status["reason"]),
            (&json!(code), &json!(reason)),
            "{path}"
        );
        assert!(
            status["message"].as_str().unwrap().contains(message),
            "{status}"
        );
    }
    let accept = "Accept: application/vnd.kubernetes.protobuf\r\n";
    assert_eq!(
        server.request("GET", "/api/v1/pods", accept).await.code,
        406
    );
}

#[tokio::test]
async fn writes_are_refused_with_the_way_to_do_it() {
    let server = TestServer::with_pods().await;
    for (method, path, allow) in [
        ("POST", "/api/v1/namespaces/default/pods", "get"),
        ("DELETE", "/api/v1/namespaces/default/pods", "get"),
        (
            "PATCH",
            "/api/v1/namespaces/default/pods/web",
            "get, delete",
        ),
        ("PUT", "/api/v1/namespaces/default/pods/web", "get, delete"),
    ] {
        let reply = server.request(method, path, "").await;
        let status = reply.json();
        assert_eq!(
            (reply.code, &status["reason"]),
            (405, &json!("MethodNotAllowed")),
            "{method}"
        );
        assert!(
            status["message"]
                .as_str()
                .unwrap()
                .contains("pods come from manifests")
        );
        let line = format!("allow: {allow}\r\n");
        assert!(reply.headers.contains(&line), "{method} {path}");
    }
}
