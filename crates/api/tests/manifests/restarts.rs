//! Sidecars, and restart policies and rules of single containers.

use rubelet_api::{
    container::{RestartAction, RestartRule},
    pod::{Pod, RestartPolicy},
    resources::QosClass,
};
use serde_json::{Value, json};

use crate::{
    invalid::{check, container},
    support::{parsed, set, small, with},
};

fn init(fields: Value) -> Value {
    let mut container = json!({"name": "init", "image": "a"});
    let Value::Object(fields) = fields else {
        panic!("not the fields of a container: {fields}");
    };
    for (key, value) in fields {
        container[key] = value;
    }
    with("/spec/initContainers", json!([container]))
}

fn rule(action: &str, operator: &str, values: &[i32]) -> Value {
    json!({"action": action, "exitCodes": {"operator": operator, "values": values}})
}

fn hash(pod: &Pod) -> String {
    let hash = pod.sandbox_definition.as_ref().expect("a static pod");
    hash.0.to_string()
}

#[test]
fn policies_and_rules_arrive() {
    let pod = parsed(include_str!("full.yaml"));
    let of = |name: &str| {
        let container = pod.spec.container(name).unwrap();
        (container.restart_policy, container.restart_rules.clone())
    };
    let rule = |action, negated, exit_codes: &[i32]| RestartRule {
        action,
        negated,
        exit_codes: exit_codes.to_vec(),
    };
    assert_eq!(
        of("setup"),
        (
            Some(RestartPolicy::Never),
            vec![rule(RestartAction::Restart, false, &[42, 43])]
        )
    );
    assert_eq!(of("proxy"), (Some(RestartPolicy::Always), vec![]));
    assert_eq!(
        of("main"),
        (
            Some(RestartPolicy::OnFailure),
            vec![rule(RestartAction::RestartAllContainers, true, &[1])]
        )
    );
    let sidecars: Vec<_> = pod
        .spec
        .sidecars()
        .map(|(at, one)| (at, &*one.name))
        .collect();
    assert_eq!(sidecars, [(1, "proxy")]);
    assert_eq!(
        parsed(&small().to_string()).spec.containers[0].restart_policy,
        None
    );
}

#[test]
fn the_first_rule_that_matches_decides() {
    let mut pod = with("/spec/containers/0/restartPolicy", json!("Never"));
    let rules = json!([
        rule("Restart", "In", &[1, 2]),
        rule("RestartAllContainers", "NotIn", &[0, 3]),
        rule("Restart", "In", &[]),
        rule("Restart", "NotIn", &[]),
    ]);
    set(&mut pod, "/spec/containers/0/restartPolicyRules", rules);
    let pod = parsed(&pod.to_string());
    let container = &pod.spec.containers[0];
    for (code, expected) in [
        (1, RestartAction::Restart),
        (2, RestartAction::Restart),
        (137, RestartAction::RestartAllContainers),
        (0, RestartAction::Restart),
        (3, RestartAction::Restart),
    ] {
        assert_eq!(container.matching_rule(code), Some(expected), "{code}");
    }
}

#[test]
fn what_the_api_server_refuses_in_policies_is_refused() {
    container(
        "restartPolicy",
        json!("Sometimes"),
        "restartPolicy",
        "Unsupported value: \"Sometimes\": supported values: \"Always\", \"OnFailure\", \"Never\"",
    );
    container(
        "restartPolicyRules",
        json!([rule("Restart", "In", &[1])]),
        "restartPolicy",
        "Required value: restartPolicyRules need it beside them",
    );
    check(
        &init(json!({"restartPolicyRules": [rule("Restart", "In", &[1])]})),
        &["spec.initContainers[0].restartPolicy: Required value: restartPolicyRules need it beside them".into()],
    );
    let most: Vec<i32> = (0..255).collect();
    let more: Vec<i32> = (0..256).collect();
    for (rules, field, message) in [
        (
            json!(vec![rule("Restart", "In", &[1]); 21]),
            "",
            "Invalid value: 21: must not be more than 20",
        ),
        (
            json!([rule("restart", "In", &most)]),
            "[0].action",
            "Unsupported value: \"restart\": supported values: \"Restart\", \"RestartAllContainers\"",
        ),
        (
            json!([{"action": "Restart"}]),
            "[0].exitCodes",
            "Required value",
        ),
        (
            json!([rule("Restart", "", &[1])]),
            "[0].exitCodes.operator",
            "Unsupported value: \"\": supported values: \"In\", \"NotIn\"",
        ),
        (
            json!([rule("Restart", "In", &more)]),
            "[0].exitCodes.values",
            "Invalid value: 256: must not be more than 255",
        ),
    ] {
        let mut pod = with("/spec/containers/0/restartPolicy", json!("Always"));
        set(
            &mut pod,
            "/spec/containers/0/restartPolicyRules",
            rules.clone(),
        );
        let mistake = format!("restartPolicyRules{field}: {message}");
        check(&pod, &[format!("spec.containers[0].{mistake}")]);
        check(
            &init(json!({"restartPolicy": "Always", "restartPolicyRules": rules})),
            &[format!("spec.initContainers[0].{mistake}")],
        );
    }
}

#[test]
fn only_sidecars_among_init_containers_have_probes_and_hooks() {
    let probe = json!({"tcpSocket": {"port": 80}});
    for (field, value) in [
        ("lifecycle", json!({})),
        ("lifecycle", json!({"preStop": {"sleep": {"seconds": 1}}})),
        ("livenessProbe", probe.clone()),
        ("readinessProbe", probe.clone()),
        ("startupProbe", probe.clone()),
    ] {
        let refusal = format!(
            "spec.initContainers[0].{field}: Forbidden: an init container can have it only with restartPolicy: Always"
        );
        for policy in [Value::Null, json!("Never"), json!("OnFailure")] {
            check(
                &init(json!({"restartPolicy": policy, field: value})),
                std::slice::from_ref(&refusal),
            );
        }
        parsed(&init(json!({"restartPolicy": "Always", field: value})).to_string());
    }
    check(
        &init(json!({"restartPolicy": "Always", "livenessProbe": {"exec": {}}})),
        &["spec.initContainers[0].livenessProbe.exec.command: Required value".into()],
    );
}

#[test]
fn a_sidecars_name_is_its_own() {
    check(
        &init(json!({"name": "main", "restartPolicy": "Always"})),
        &["spec.initContainers[0].name: Duplicate value: \"main\"".into()],
    );
}

#[test]
fn a_sidecars_host_ports_are_its_own() {
    let ports = json!([{"containerPort": 80, "hostPort": 8080}]);
    let sidecar = json!({"name": "one", "image": "a", "restartPolicy": "Always", "ports": ports});
    let mut other = sidecar.clone();
    other["name"] = "two".into();
    let init = json!({"name": "init", "image": "a", "ports": ports});
    let mut pod = with("/spec/initContainers", json!([init, sidecar]));
    parsed(&pod.to_string());
    set(&mut pod, "/spec/containers/0/ports", ports.clone());
    check(
        &pod,
        &["spec.initContainers[1].ports[0].hostPort: Duplicate value: \"TCP//8080\"".into()],
    );
    check(
        &with("/spec/initContainers", json!([sidecar, init, other])),
        &["spec.initContainers[2].ports[0].hostPort: Duplicate value: \"TCP//8080\"".into()],
    );
    // With host network nothing is mapped, and each container says what it might listen on.
    let mut host = with("/spec/hostNetwork", json!(true));
    let ports = json!([{"containerPort": 80}]);
    set(&mut host, "/spec/containers/0/ports", ports.clone());
    let sidecar = json!({"name": "one", "image": "a", "restartPolicy": "Always", "ports": ports});
    set(&mut host, "/spec/initContainers", json!([sidecar]));
    parsed(&host.to_string());
}

#[test]
fn a_sandbox_is_recreated_for_the_host_ports_of_sidecars() {
    let of = |policy: Value, host_port: Value| {
        let ports = json!([{"containerPort": 80, "hostPort": host_port}]);
        hash(&parsed(
            &init(json!({"restartPolicy": policy, "ports": ports})).to_string(),
        ))
    };
    let none = of(json!("Always"), Value::Null);
    assert_ne!(of(json!("Always"), json!(8080)), none);
    assert_eq!(of(Value::Null, json!(8080)), none, "nothing maps it");
}

#[test]
fn sidecars_count_in_the_quality_of_service() {
    let pod = init(json!({"restartPolicy": "Always", "resources": {"requests": {"cpu": "1"}}}));
    assert_eq!(parsed(&pod.to_string()).spec.qos, QosClass::Burstable);
}
