//! Paths of the API.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

use k8s_openapi::List;
use k8s_openapi::api::core::v1::{Event, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{APIGroupList, APIResourceList, Status};
use serde_json::Value;

use crate::Shown;
use crate::outside::raw_http::{RawResponse, request};

fn get(shown: &Shown, path: &str) -> RawResponse {
    request(&shown.agent.api_socket(), &format!("GET {path}"), &[])
}

fn good(shown: &Shown, path: &str) -> Value {
    let answer = get(shown, path);
    assert_eq!(answer.status, 200, "{path}: {answer:#?}");
    assert_eq!(answer.header("content-type"), Some("application/json"));
    answer.json()
}

#[test]
fn lists_and_objects_have_the_types_of_kubernetes() {
    let shown = Shown::shared();
    for path in ["/api/v1/pods", "/pods", "/api/v1/pods/"] {
        let list: List<Pod> = serde_json::from_value(good(&shown, path)).unwrap();
        assert_eq!(list.items.len(), 3, "{path}");
        assert!(list.metadata.resource_version.is_some());
    }
    let list = good(&shown, "/api/v1/namespaces/default/pods");
    let list: List<Pod> = serde_json::from_value(list).unwrap();
    assert_eq!(list.items.len(), 2);
    let pod = good(&shown, "/api/v1/namespaces/other/pods/apart-testnode");
    let pod: Pod = serde_json::from_value(pod).unwrap();
    assert_eq!(pod.metadata.namespace.as_deref(), Some("other"));
    let events = good(&shown, "/api/v1/events");
    let events: List<Event> = serde_json::from_value(events).unwrap();
    assert!(
        events
            .items
            .iter()
            .any(|event| event.reason.as_deref() == Some("Started"))
    );
    let fields = "metadata.name%3Dweb-testnode,metadata.namespace=default";
    let list = good(&shown, &format!("/api/v1/pods?fieldSelector={fields}"));
    assert_eq!(list["items"].as_array().unwrap().len(), 1);

    let groups: APIGroupList = serde_json::from_value(good(&shown, "/apis")).unwrap();
    assert_eq!(groups.groups[0].name, "node.rubelet.dev");
    for path in ["/api/v1", "/apis/node.rubelet.dev/v1alpha1"] {
        let list: APIResourceList = serde_json::from_value(good(&shown, path)).unwrap();
        assert!(!list.resources.is_empty());
    }
    let version = good(&shown, "/version");
    assert_eq!(version["major"], "1");
}

#[test]
fn the_log_of_a_container_is_text() {
    let shown = Shown::shared();
    let path = "/api/v1/namespaces/default/pods/web-testnode/log";
    let answer = get(&shown, path);
    assert_eq!((answer.status, &*answer.body), (200, "hello from web\n"));
    assert!(
        answer
            .header("content-type")
            .unwrap()
            .starts_with("text/plain")
    );
    let answer = get(&shown, "/api/v1/namespaces/default/pods/db-testnode/log");
    assert_eq!(answer.status, 400);
    let message = answer.json()["message"].to_string();
    assert!(
        message.contains("choose one of: [prepare main sidecar]"),
        "{message}"
    );
}

#[test]
fn the_configuration_in_use_is_reported() {
    let shown = Shown::shared();
    let config = &good(&shown, "/configz")["kubeletconfig"];
    assert_eq!(config["healthzPort"], shown.agent.healthz_port());
    assert_eq!(config["failCgroupV1"], false);
    assert_eq!(config["fileCheckFrequency"], "20s", "defaults are in it");
}

#[test]
fn missing_objects_and_forbidden_methods_get_a_status() {
    let shown = Shown::shared();
    let socket = shown.agent.api_socket();
    let pod = "/api/v1/namespaces/default/pods/web-testnode";
    let rows = [
        ("GET /", 404, "NotFound"),
        ("GET /api/v1/nodes", 404, "NotFound"),
        (
            "GET /api/v1/namespaces/default/pods/nothing",
            404,
            "NotFound",
        ),
        (
            "GET /api/v1/namespaces/other/pods/web-testnode",
            404,
            "NotFound",
        ),
        ("GET /apis/apps/v1/deployments", 404, "NotFound"),
        (
            "GET /api/v1/namespaces/default/pods/nothing/log",
            404,
            "NotFound",
        ),
        (&format!("DELETE {pod}"), 409, "Conflict"),
        (&format!("PUT {pod}"), 405, "MethodNotAllowed"),
        (
            "POST /api/v1/namespaces/default/pods",
            405,
            "MethodNotAllowed",
        ),
        ("GET /api/v1/pods?watch=1&resourceVersion=1", 410, "Expired"),
        ("GET /api/v1/pods?labelSelector=a=b=c", 400, "BadRequest"),
        ("GET /api/v1/pods?watch=perhaps", 400, "BadRequest"),
        ("GET /api/v1/pods/%zz", 400, "BadRequest"),
        (&format!("GET {pod}/log?tailLines=-4"), 400, "BadRequest"),
        (
            &format!("GET {pod}/log?container=nothing"),
            400,
            "BadRequest",
        ),
    ];
    for (line, code, reason) in rows {
        let answer = request(&socket, line, &[]);
        assert_eq!(answer.status, code, "{line}: {answer:#?}");
        let status: Status = serde_json::from_str(&answer.body).unwrap();
        assert_eq!(status.code, Some(i32::from(code)), "{line}");
        assert_eq!(status.reason.as_deref(), Some(reason), "{line}");
        assert_eq!(status.status.as_deref(), Some("Failure"), "{line}");
        assert!(
            status.message.is_some_and(|message| !message.is_empty()),
            "{line}"
        );
        let allow = answer.header("allow");
        assert_eq!(allow.is_some(), code == 405, "{line}: {allow:?}");
    }
    // Data that is not HTTP is refused, and the agent continues.
    let mut stream = UnixStream::connect(&socket).unwrap();
    stream.write_all(b"HELO there\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(
        answer.is_empty() || answer.starts_with("HTTP/1.1 400"),
        "{answer}"
    );
    assert_eq!(request(&socket, "GET /healthz", &[]).status, 200);
}

#[test]
fn a_table_is_served_on_request() {
    let shown = Shown::shared();
    let accept = "Accept: application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
    let answer = request(&shown.agent.api_socket(), "GET /api/v1/pods", &[accept]);
    let table = answer.json();
    assert_eq!(table["kind"], "Table");
    let columns = table["columnDefinitions"].as_array().unwrap();
    let names: Vec<&str> = columns.iter().filter_map(|c| c["name"].as_str()).collect();
    assert_eq!(names[..5], ["Name", "Ready", "Status", "Restarts", "Age"]);
    let rows = table["rows"].as_array().unwrap();
    let web = rows
        .iter()
        .find(|row| row["cells"][0] == "web-testnode")
        .unwrap();
    assert_eq!(web["cells"][1], "1/1");
    assert_eq!(web["object"]["kind"], "PartialObjectMetadata");
}
