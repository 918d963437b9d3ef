//! Tokens of service accounts, used from inside of pods.

use rubelet_testbed::api_server;
use serde_json::json;

use super::{applies, wait_long};
use crate::joined::{Joined, condition, pod};

#[test]
fn a_pod_authenticates_to_the_api_server_by_its_token() {
    if !applies() {
        return;
    }
    let joined = Joined::start("worker");
    let kubectl = api_server::kubectl().unwrap();
    if !rubelet_needs::applies(kubectl.is_absolute(), "the directory has no kubectl") {
        return;
    }
    let files = "/var/run/secrets/kubernetes.io/serviceaccount";
    let server = joined.kubectl.stdout(&[
        "config",
        "view",
        "-o",
        "jsonpath={.clusters[0].cluster.server}",
    ]);
    let script = format!(
        "set -e; cd {files}; ask() {{ HOME=/tmp /tools/kubectl --server={server} \
         --certificate-authority=ca.crt --token=$(cat token) \"$@\"; }}; \
         ask auth whoami -o jsonpath='{{.status.userInfo.username}}'; echo; \
         ask auth whoami -o jsonpath='{{.status.userInfo.extra}}'; echo; \
         ask get pods 2>&1 || true"
    );
    let mut asks = pod("asks", &script);
    let spec = &mut asks["spec"];
    // The server listens on the node's loopback only.
    spec["hostNetwork"] = true.into();
    spec["restartPolicy"] = "Never".into();
    let tools = kubectl.parent().unwrap().display().to_string();
    spec["volumes"] = json!([{ "name": "tools", "hostPath": { "path": tools } }]);
    spec["containers"][0]["volumeMounts"] =
        json!([{ "name": "tools", "mountPath": "/tools", "readOnly": true }]);
    joined.create(&asks);
    let done = wait_long(&joined, "pod/asks", |pod| {
        ["Succeeded", "Failed"].contains(&pod["status"]["phase"].as_str().unwrap_or_default())
    });
    let log = joined.kubectl.stdout(&["logs", "asks"]);
    assert_eq!(done["status"]["phase"], "Succeeded", "{log}");
    let mut lines = log.lines();
    assert_eq!(lines.next(), Some("system:serviceaccount:default:default"));
    let extra = lines.next().unwrap_or_default();
    let uid = done["metadata"]["uid"].as_str().unwrap();
    for part in ["asks", uid, "worker"] {
        assert!(extra.contains(part), "{part}: {log}");
    }
    assert!(
        log.contains("forbidden"),
        "the account may do nothing: {log}"
    );
    assert_eq!(condition(&done, "Ready"), "False");
    joined.cluster.no_violations().unwrap();
}
