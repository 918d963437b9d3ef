//! Which edits restart what.

use rubelet_api::pod::Pod;
use serde_json::{Value, json};

use crate::support::{parsed, set, small};

fn definitions(pod: &Pod) -> (String, Vec<String>) {
    let of = |hash: &rubelet_api::container::DefinitionHash| hash.0.to_string();
    (
        of(pod.sandbox_definition.as_ref().expect("a static pod")),
        pod.spec
            .all_containers()
            .map(|container| of(container.definition.as_ref().expect("a static pod")))
            .collect(),
    )
}

#[test]
fn order_comments_and_notation_change_no_hash() {
    let yaml = "\
# a web server
kind: Pod
apiVersion: v1
spec:
  containers:
  - image: busybox # small
    name: main
    ports:
    - hostPort: 80
      containerPort: 80
  volumes: [{name: a, emptyDir: {}}]
metadata:
  name: web
";
    let json = r#"{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}, "spec": {
        "volumes": [{"emptyDir": {}, "name": "a"}],
        "containers": [{"name": "main", "image": "busybox", "ports": [{"containerPort": 80, "hostPort": 80}]}]}}"#;
    let (one, other) = (parsed(yaml), parsed(json));
    assert_eq!(definitions(&one), definitions(&other));
    assert_eq!(
        one.annotations["kubernetes.io/config.hash"],
        other.annotations["kubernetes.io/config.hash"]
    );
    assert_eq!(one, other);
}

#[test]
fn an_edit_changes_only_the_hash_of_what_it_edits() {
    let mut base = small();
    set(
        &mut base,
        "/spec/initContainers",
        json!([{"name": "init", "image": "a"}]),
    );
    let (sandbox, containers) = definitions(&parsed(&base.to_string()));
    let edited = |pointer: &str, value: Value| {
        let mut pod = base.clone();
        set(&mut pod, pointer, value);
        definitions(&parsed(&pod.to_string()))
    };
    let (other, after) = edited("/spec/resources", json!({"limits": {"cpu": "1"}}));
    assert_ne!(other, sandbox, "containers have a part in what the pod has");
    assert_eq!(after, containers);
    let (same, after) = edited("/spec/containers/0/image", json!("b"));
    assert_eq!((&same, &after[0]), (&sandbox, &containers[0]));
    assert_ne!(after[1], containers[1]);
    let (same, after) = edited("/spec/initContainers/0/args", json!(["x"]));
    assert_eq!((&same, &after[1]), (&sandbox, &containers[1]));
    assert_ne!(after[0], containers[0]);
    let probe = json!({"tcpSocket": {"port": 80}});
    for (field, value) in [
        ("livenessProbe", probe.clone()),
        ("readinessProbe", probe.clone()),
        ("startupProbe", probe),
        ("lifecycle", json!({"preStop": {"sleep": {"seconds": 1}}})),
        ("restartPolicy", json!("Never")),
    ] {
        let (same, after) = edited(&format!("/spec/containers/0/{field}"), value);
        assert_eq!((&same, &after[0]), (&sandbox, &containers[0]), "{field}");
        assert_ne!(after[1], containers[1], "{field}");
    }
    let (same, after) = edited("/spec/initContainers/0/restartPolicy", json!("Always"));
    assert_eq!((&same, &after[1]), (&sandbox, &containers[1]));
    assert_ne!(after[0], containers[0]);
    for (pointer, value) in [
        ("/metadata/labels", json!({"a": "b"})),
        ("/spec/readinessGates", json!([{"conditionType": "a"}])),
        ("/metadata/annotations", json!({"a": "b"})),
        ("/spec/restartPolicy", json!("Never")),
        ("/spec/terminationGracePeriodSeconds", json!(1)),
        ("/spec/priority", json!(1)),
    ] {
        assert_eq!(
            edited(pointer, value),
            (sandbox.clone(), containers.clone()),
            "{pointer}"
        );
    }
    for (pointer, value) in [
        ("/spec/hostNetwork", json!(true)),
        ("/spec/securityContext", json!({"runAsUser": 1})),
        ("/spec/volumes", json!([{"name": "a"}])),
    ] {
        let (other, after) = edited(pointer, value);
        assert_ne!(other, sandbox, "{pointer}");
        assert_eq!(after, containers, "{pointer}");
    }
}

#[test]
fn every_part_of_a_probe_a_hook_and_a_rule_counts_in_the_definition() {
    let base = json!({
        "restartPolicy": "Never",
        "restartPolicyRules": [{"action": "Restart", "exitCodes": {"operator": "In", "values": [1]}}],
        "livenessProbe": {"httpGet": {"port": 80}, "periodSeconds": 5},
        "lifecycle": {"postStart": {"exec": {"command": ["a"]}}},
    });
    let of = |fields: &Value| {
        let mut pod = small();
        for (field, value) in fields.as_object().expect("fields of a container") {
            set(
                &mut pod,
                &format!("/spec/containers/0/{field}"),
                value.clone(),
            );
        }
        definitions(&parsed(&pod.to_string())).1
    };
    for (pointer, value) in [
        ("/restartPolicy", json!("OnFailure")),
        (
            "/restartPolicyRules/0/action",
            json!("RestartAllContainers"),
        ),
        ("/restartPolicyRules/0/exitCodes/operator", json!("NotIn")),
        ("/restartPolicyRules/0/exitCodes/values/0", json!(2)),
        ("/livenessProbe/httpGet/port", json!(81)),
        ("/livenessProbe/httpGet/path", json!("/a")),
        ("/livenessProbe/periodSeconds", json!(6)),
        ("/lifecycle/postStart/exec/command/0", json!("b")),
    ] {
        let mut edited = base.clone();
        set(&mut edited, pointer, value);
        assert_ne!(of(&edited), of(&base), "{pointer}");
    }
}

#[test]
fn upstreams_hash_takes_name_and_image_as_written() {
    let mut pod = small();
    set(
        &mut pod,
        "/spec/containers/0",
        json!({"name": "a", "image": "foo/image:v1"}),
    );
    let container = parsed(&pod.to_string()).spec.containers[0].clone();
    assert_eq!(
        *container.hash,
        *rubelet_api::hash::container_hash("a", "foo/image:v1")
    );
}
