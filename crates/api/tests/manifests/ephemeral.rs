//! Ephemeral containers: parsed for a pod that runs, and written into it.

use rubelet_api::{
    container::{PullPolicy, TerminationMessagePolicy},
    parse::{FieldError, ephemeral_container},
    pod::Pod,
};
use serde_json::{Value, json};

use crate::support::{parsed, set, with};

/// A pod with an init container, a regular one and a volume.
fn pod() -> Pod {
    let mut pod = with("/spec/volumes", json!([{"name": "data"}]));
    set(
        &mut pod,
        "/spec/initContainers",
        json!([{"name": "init", "image": "a"}]),
    );
    parsed(&pod.to_string())
}

fn with_fields(fields: Value) -> Value {
    let mut container = json!({"name": "debug", "image": "busybox:1.36"});
    let Value::Object(fields) = fields else {
        panic!("not the fields of a container: {fields}");
    };
    for (key, value) in fields {
        container[key] = value;
    }
    container
}

fn mistakes(text: &str, pod: &Pod) -> Vec<String> {
    let errors = ephemeral_container(text, pod).map(|_| ()).expect_err(text);
    errors.iter().map(FieldError::to_string).collect()
}

#[track_caller]
fn check(fields: Value, expected: &[&str]) {
    let text = with_fields(fields).to_string();
    let expected: Vec<String> = expected
        .iter()
        .map(|message| format!("spec.ephemeralContainers[0].{message}"))
        .collect();
    assert_eq!(mistakes(&text, &pod()), expected, "{text}");
}

#[test]
fn a_small_one_gets_the_defaults_of_containers() {
    let text = r#"{"name": "debug", "image": "busybox", "targetContainerName": "main", "stdin": true, "tty": true}"#;
    let (found, json) = ephemeral_container(text, &pod()).unwrap();
    assert_eq!(found.target.as_deref(), Some("main"));
    let container = &found.container;
    assert_eq!((&*container.name, &*container.image), ("debug", "busybox"));
    assert_eq!(container.pull_policy, PullPolicy::Always);
    assert_eq!(
        container.termination_message_policy,
        TerminationMessagePolicy::File
    );
    assert!(container.stdin && container.tty && !container.stdin_once);
    assert_eq!(container.definition, None);
    assert_eq!(
        json,
        json!({
            "name": "debug", "image": "busybox", "imagePullPolicy": "Always", "resources": {},
            "stdin": true, "tty": true, "targetContainerName": "main",
            "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
        })
    );
}

#[test]
fn every_field_that_it_may_have_arrives() {
    let fields = json!({
        "command": ["sh"], "args": ["-c", "true"], "workingDir": "/",
        "env": [
            {"name": "A", "value": "b"},
            {"name": "CPU", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu", "divisor": 1}}},
            {"name": "OWN", "valueFrom": {"resourceFieldRef": {"containerName": "debug", "resource": "limits.cpu"}}},
            {"name": "OTHER", "valueFrom": {"resourceFieldRef": {"containerName": "init", "resource": "limits.cpu"}}},
        ],
        "volumeMounts": [{"name": "data", "mountPath": "/data", "readOnly": true}],
        "securityContext": {"privileged": true, "capabilities": {"add": ["SYS_PTRACE"]}},
        "imagePullPolicy": "Never", "terminationMessagePolicy": "FallbackToLogsOnError",
        "terminationMessagePath": "/end", "stdinOnce": true,
        "ports": [], "resources": {"limits": {}}, "restartPolicy": null, "livenessProbe": null,
    });
    let (found, _) = ephemeral_container(&with_fields(fields).to_string(), &pod()).unwrap();
    let container = &found.container;
    assert_eq!(found.target, None);
    assert_eq!(*container.command, ["sh".into()]);
    assert_eq!(*container.args, ["-c".into(), "true".into()]);
    assert_eq!(container.env.len(), 4);
    assert_eq!(&*container.mounts[0].mount_path, "/data");
    assert!(container.security.privileged && container.stdin_once);
    assert_eq!(container.pull_policy, PullPolicy::Never);
    assert_eq!(&*container.termination_message_path, "/end");
}

#[test]
fn the_apparmor_annotation_of_the_pod_counts() {
    let annotations = json!({"container.apparmor.security.beta.kubernetes.io/debug": "unconfined"});
    let pod = parsed(&with("/metadata/annotations", annotations).to_string());
    let (found, _) = ephemeral_container(&with_fields(json!({})).to_string(), &pod).unwrap();
    assert!(found.container.security.shared.apparmor.is_some());
}

#[test]
fn what_it_must_not_have_is_refused() {
    let refused = "Forbidden: an ephemeral container cannot have it";
    let probe = json!({"tcpSocket": {"port": 80}, "terminationGracePeriodSeconds": 1});
    for (field, value) in [
        ("lifecycle", json!({"stopSignal": "SIGINT"})),
        ("livenessProbe", probe.clone()),
        ("livenessProbe", json!({})),
        ("ports", json!([{"containerPort": 80}])),
        ("readinessProbe", probe.clone()),
        (
            "resizePolicy",
            json!([{"resourceName": "cpu", "restartPolicy": "NotRequired"}]),
        ),
        ("resources", json!({"limits": {"cpu": 1}})),
        ("resources", json!({"requests": {"cpu": "1"}})),
        ("resources", json!({"claims": [{"name": "a"}]})),
        ("restartPolicy", json!("Always")),
        ("restartPolicyRules", json!([{"action": "Restart"}])),
        ("startupProbe", probe.clone()),
    ] {
        check(json!({field: value}), &[&format!("{field}: {refused}")]);
    }
    check(
        json!({"volumeMounts": [
            {"name": "data", "mountPath": "/a"},
            {"name": "data", "mountPath": "/b", "subPath": "b"},
            {"name": "data", "mountPath": "/c", "subPathExpr": "c"},
        ]}),
        &[
            &format!("volumeMounts[1].subPath: {refused}"),
            &format!("volumeMounts[2].subPathExpr: {refused}"),
        ],
    );
}

#[test]
fn what_any_container_must_not_have_is_refused() {
    check(json!({"image": ""}), &["image: Required value"]);
    check(json!({"image": "a", "name": ""}), &["name: Required value"]);
    check(
        json!({"name": "A"}),
        &[
            "name: Invalid value: \"A\": use up to 63 lower-case letters, digits and '-', with a letter or digit at both ends",
        ],
    );
    check(
        json!({"envFrom": [{"secretRef": {"name": "a"}}]}),
        &[
            "envFrom: Forbidden: static pods cannot use objects of the API server (config maps and secrets)",
        ],
    );
    check(
        json!({"volumeMounts": [{"name": "other", "mountPath": "/a"}]}),
        &["volumeMounts[0].name: Not found: \"other\": the pod has no volume of this name"],
    );
    check(
        json!({"securityContext": {"capabilities": {"add": ["PTRACE"]}}, "terminationMessagePolicy": "Log"}),
        &[
            "securityContext.capabilities.add[0]: Invalid value: \"PTRACE\": no capability of Linux",
            "terminationMessagePolicy: Unsupported value: \"Log\": supported values: \"File\", \"FallbackToLogsOnError\"",
        ],
    );
}

#[test]
fn its_name_is_its_own_and_its_target_is_there() {
    for name in ["main", "init"] {
        check(
            json!({"name": name}),
            &[&format!("name: Duplicate value: {name:?}")],
        );
    }
    check(
        json!({"targetContainerName": "mian"}),
        &[
            "targetContainerName: Not found: \"mian\": the pod has the containers \"init\", \"main\"",
        ],
    );
    let text = with_fields(json!({"targetContainerName": "init"})).to_string();
    let first = ephemeral_container(&text, &pod()).unwrap();
    let pod = pod().with_ephemeral(vec![first]);
    assert_eq!(
        mistakes(&text, &pod),
        ["spec.ephemeralContainers[1].name: Duplicate value: \"debug\""]
    );
    let onto = json!({"name": "second", "image": "a", "targetContainerName": "debug"});
    assert_eq!(
        mistakes(&onto.to_string(), &pod),
        [
            "spec.ephemeralContainers[1].targetContainerName: Not found: \"debug\": the pod has the containers \"init\", \"main\""
        ]
    );
}

#[test]
fn a_text_that_is_no_container_is_refused_with_its_place() {
    let field = "spec.ephemeralContainers[0]";
    for (text, expected) in [
        (
            "",
            format!("{field}: expected a mapping (EphemeralContainer)"),
        ),
        (
            "[]",
            format!("{field}: expected a mapping (EphemeralContainer)"),
        ),
        (
            "{\"name\": 5}",
            format!("{field}.name: expected a string, found the number 5; put it in quotes"),
        ),
        (
            "{\"name\": \"a\", \"targetContainrName\": \"b\"}",
            format!(
                "{field}.targetContainrName: unknown field; did you mean \"targetContainerName\"?"
            ),
        ),
    ] {
        assert_eq!(mistakes(text, &pod()), [expected], "{text}");
    }
    let cut_off = mistakes("{\"name\": \"a\",", &pod());
    assert!(cut_off[0].starts_with("line 1, column "), "{cut_off:?}");
}

#[test]
fn a_pod_with_them_says_so_and_keeps_its_definitions() {
    let base = pod();
    let one = |name: &str| {
        let text = with_fields(json!({"name": name})).to_string();
        ephemeral_container(&text, &base).unwrap()
    };
    let both = base.with_ephemeral(vec![one("one"), one("two")]);
    let names: Vec<&str> = both
        .spec
        .ephemeral_containers
        .iter()
        .map(|one| &*one.container.name)
        .collect();
    assert_eq!(names, ["one", "two"]);
    assert!(both.spec.container("two").is_some());
    let shown = |pod: &Pod| serde_json::from_str::<Value>(&pod.json).unwrap();
    assert_eq!(shown(&both)["spec"]["ephemeralContainers"][1], one("two").1);
    assert_eq!(both.sandbox_definition, base.sandbox_definition);
    assert_eq!(both.spec.containers, base.spec.containers);
    assert_eq!(both.spec.init_containers, base.spec.init_containers);
    assert_eq!(both.spec.qos, base.spec.qos);

    // What is shown can be parsed again, for a record that survives a restart of the agent.
    let again = ephemeral_container(&one("two").1.to_string(), &base).unwrap();
    assert_eq!(again, one("two"));

    let none = both.with_ephemeral(vec![]);
    assert_eq!(none.spec, base.spec);
    assert_eq!(shown(&none), shown(&base));
}
