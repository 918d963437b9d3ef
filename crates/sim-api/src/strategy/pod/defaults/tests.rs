//! Tests of `defaults`.

use super::*;

#[test]
fn defaults_of_a_pod_do_not_override_given_fields() {
    let mut pod = json!({ "spec": {
        "restartPolicy": "Never",
        "hostNetwork": true,
        "containers": [{
            "name": "a", "image": "web",
            "ports": [{ "containerPort": 80 }],
            "resources": { "limits": { "cpu": "1" }, "requests": { "memory": "1Mi" } },
            "livenessProbe": { "httpGet": { "port": 80 }, "periodSeconds": 3 },
        }],
        "volumes": [
            { "name": "v" },
            { "name": "s", "secret": { "secretName": "x" } },
            { "name": "i", "image": { "reference": "data:1" } },
        ],
    } });
    complete(&mut pod);
    let spec = &pod["spec"];
    assert_eq!(spec["restartPolicy"], "Never");
    assert_eq!(spec["terminationGracePeriodSeconds"], 30);
    let container = &spec["containers"][0];
    assert_eq!(container["imagePullPolicy"], "Always");
    assert_eq!(container["ports"][0]["hostPort"], 80);
    assert_eq!(
        container["resources"]["requests"],
        json!({ "cpu": "1", "memory": "1Mi" })
    );
    assert_eq!(container["livenessProbe"]["httpGet"]["scheme"], "HTTP");
    assert_eq!(container["livenessProbe"]["periodSeconds"], 3);
    assert_eq!(spec["volumes"][0]["emptyDir"], json!({}));
    assert_eq!(spec["volumes"][1]["secret"]["defaultMode"], 420);
    assert_eq!(spec["volumes"][2]["image"]["pullPolicy"], "IfNotPresent");
    let once = pod.clone();
    complete(&mut pod);
    assert_eq!(pod, once);
}

#[test]
fn images_that_can_change_are_always_pulled() {
    for (image, policy) in [
        ("web", "Always"),
        ("web:latest", "Always"),
        ("host:5000/web", "Always"),
        ("host:5000/web:1", "IfNotPresent"),
        ("web@sha256:00", "IfNotPresent"),
    ] {
        assert_eq!(pull_policy(image), policy, "{image}");
    }
}
