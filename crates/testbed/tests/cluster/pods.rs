//! Pods that are created with kubectl.

use serde_json::json;

use crate::joined::{Joined, WAITS, bound, pod, restarts, wait_stdout};
use crate::outside::TIMEOUT;
use crate::outside::children::Lines;

#[test]
fn a_pod_of_kubectl_has_its_whole_lifecycle() {
    let joined = Joined::start("worker");
    let kubectl = &joined.kubectl;
    let nodes = kubectl.stdout(&["get", "nodes", "--no-headers"]);
    assert!(nodes.starts_with("worker "), "{nodes}");
    assert!(nodes.contains(" Ready "), "{nodes}");

    let api = joined.cluster.api();
    let map = json!({
        "metadata": { "name": "settings", "namespace": "default" },
        "data": { "GREETING": "hello", "file": "one" },
    });
    api.create("configmaps", &map).unwrap();
    let secret = json!({
        "metadata": { "name": "login", "namespace": "default" },
        "data": { "password": "czNjcmV0" },
    });
    api.create("secrets", &secret).unwrap();
    let script = "echo $GREETING $PASSWORD; trap 'exit 0' TERM; \
                  while :; do cat /settings/file; echo; sleep 0.2; done";
    let mut web = pod("web", script);
    let main = &mut web["spec"]["containers"][0];
    main["envFrom"] = json!([{ "configMapRef": { "name": "settings" } }]);
    let key = json!({ "secretKeyRef": { "name": "login", "key": "password" } });
    main["env"] = json!([{ "name": "PASSWORD", "valueFrom": key }]);
    main["volumeMounts"] = json!([{ "name": "settings", "mountPath": "/settings" }]);
    web["spec"]["volumes"] = json!([{ "name": "settings", "configMap": { "name": "settings" } }]);
    let file = joined.cluster.path("web.json");
    web["apiVersion"] = "v1".into();
    web["kind"] = "Pod".into();
    std::fs::write(&file, web.to_string()).unwrap();
    let file = file.display().to_string();
    kubectl.stdout(&["create", "--validate=false", "-f", &file]);
    kubectl.stdout(&["wait", "--for=condition=Ready", "--timeout=60s", "pod/web"]);

    let logs = wait_stdout(kubectl, &["logs", "web"], |text| text.contains("one"));
    assert!(logs.starts_with("hello s3cret\n"), "{logs}");
    let mut followed = Lines::start(kubectl.command().args(["logs", "-f", "--tail=1", "web"]));
    followed.wait("the file", TIMEOUT, |line| line == "one");
    let edit = r#"{"data":{"file":"two"}}"#;
    kubectl.stdout(&["patch", "configmap", "settings", "--type=merge", "-p", edit]);
    followed.wait("the edited file", TIMEOUT, |line| line == "two");

    let wide = kubectl.stdout(&["get", "pod", "web", "-o", "wide", "--no-headers"]);
    assert!(wide.contains("1/1") && wide.contains("worker"), "{wide}");
    let described = kubectl.stdout(&["describe", "pod", "web"]);
    for part in ["Node:", "worker/", "Started", "Container started"] {
        assert!(described.contains(part), "{part}: {described}");
    }
    let events = wait_stdout(kubectl, &["get", "events"], |text| text.contains("Started"));
    assert!(events.contains("Pulled"), "{events}");

    kubectl.stdout(&["delete", "pod", "web", "--timeout=60s"]);
    drop(followed);
    assert!(!kubectl.stdout(&["get", "pods"]).contains("web"));
    joined.wait_empty();
    joined.cluster.no_violations().unwrap();
}

#[test]
fn missing_objects_are_awaited_and_unsupported_rejected() {
    let joined = Joined::start("worker");
    let api = joined.cluster.api();
    let mut waits = pod("waits", WAITS);
    let main = &mut waits["spec"]["containers"][0];
    main["envFrom"] = json!([{ "configMapRef": { "name": "late" } }]);
    joined.create(&waits);
    let seen = joined.wait_pod("waits", "says what is missing", |pod| {
        let waiting = &pod["status"]["containerStatuses"][0]["state"]["waiting"];
        waiting["reason"] == "CreateContainerConfigError"
    });
    let waiting = &seen["status"]["containerStatuses"][0]["state"]["waiting"];
    assert_eq!(waiting["message"], "configmap \"late\" not found");
    let late = json!({
        "metadata": { "name": "late", "namespace": "default" },
        "data": { "A": "b" },
    });
    api.create("configmaps", &late).unwrap();
    let seen = joined.wait_ready("waits");
    assert_eq!(restarts(&seen), 0);

    // The scheduler would not bind it.
    let mut claims = bound("claims", WAITS);
    let claim = json!({ "claimName": "data" });
    claims["spec"]["volumes"] = json!([{ "name": "v", "persistentVolumeClaim": claim }]);
    joined.create(&claims);
    let seen = joined.wait_pod("claims", "is rejected", |pod| {
        pod["status"]["phase"] == "Failed"
    });
    assert_eq!(seen["status"]["reason"], "PodFeatureUnsupported");
    let message = seen["status"]["message"].as_str().unwrap();
    assert!(message.contains("persistentVolumeClaim"), "{message}");

    let mut elsewhere = bound("elsewhere", WAITS);
    elsewhere["spec"]["nodeSelector"] = json!({ "disk": "ssd" });
    joined.create(&elsewhere);
    let seen = joined.wait_pod("elsewhere", "is rejected", |pod| {
        pod["status"]["phase"] == "Failed"
    });
    assert_eq!(seen["status"]["reason"], "NodeAffinity");
    for name in ["waits", "claims", "elsewhere"] {
        joined
            .kubectl
            .stdout(&["delete", "pod", name, "--timeout=60s"]);
    }
    joined.wait_empty();
    joined.cluster.no_violations().unwrap();
}

#[test]
fn a_finished_pod_stays_finished_and_keeps_its_log() {
    let mut joined = Joined::start("worker");
    let mut job = pod("job", "echo result");
    job["spec"]["restartPolicy"] = "Never".into();
    joined.create(&job);
    let done = |pod: &serde_json::Value| pod["status"]["phase"] == "Succeeded";
    joined.wait_pod("job", "is done", done);
    assert_eq!(joined.kubectl.stdout(&["logs", "job"]), "result\n");
    joined.agent.kill9().unwrap();
    joined.agent.start().unwrap();
    // It must learn of the pod first.
    let logs = wait_stdout(&joined.kubectl, &["logs", "job"], |_| true);
    assert_eq!(logs, "result\n");
    joined
        .kubectl
        .stdout(&["delete", "pod", "job", "--timeout=60s"]);
    joined.wait_empty();
    joined.cluster.no_violations().unwrap();
}
