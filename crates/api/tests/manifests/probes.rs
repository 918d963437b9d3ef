//! Probes: what a manifest says arrives, and what the API server would refuse is refused.

use std::time::Duration;

use rubelet_api::{
    parse::{ParseContext, parse},
    pod::{Pod, PodSource},
    probe::{GrpcCheck, HttpGet, Probe, ProbeHandler, TargetPort, TcpSocket},
};
use serde_json::{Value, json};

use crate::{
    invalid::{check, container},
    support::{context, parsed, raw, set, with},
};

const PROBES: [&str; 3] = ["livenessProbe", "readinessProbe", "startupProbe"];

fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

fn default_probe(handler: ProbeHandler) -> Probe {
    Probe {
        handler,
        initial_delay: Duration::ZERO,
        period: seconds(10),
        timeout: seconds(1),
        success_threshold: 1,
        failure_threshold: 3,
        termination_grace: None,
    }
}

fn liveness(pod: &Pod) -> &Probe {
    let probe = pod.spec.containers[0].liveness.as_deref();
    probe.expect("it has a liveness probe")
}

fn api() -> ParseContext<'static> {
    ParseContext {
        source: PodSource::Api,
        ..context()
    }
}

#[test]
fn every_field_of_a_probe_arrives() {
    let pod = parsed(include_str!("full.yaml"));
    let main = pod.spec.container("main").unwrap();
    let words = |words: &[&str]| words.iter().map(|word| (*word).into()).collect();
    assert_eq!(
        main.liveness.as_deref(),
        Some(&Probe {
            initial_delay: seconds(3),
            timeout: seconds(2),
            termination_grace: Some(seconds(1)),
            ..default_probe(ProbeHandler::Exec(words(&["cat", "/tmp/alive"])))
        })
    );
    assert_eq!(
        main.readiness.as_deref(),
        Some(&Probe {
            success_threshold: 2,
            ..default_probe(ProbeHandler::Grpc(GrpcCheck {
                port: 8080,
                service: "shop".into()
            }))
        })
    );
    assert_eq!(
        main.startup.as_deref(),
        Some(&default_probe(ProbeHandler::Tcp(TcpSocket {
            host: None,
            port: TargetPort::Number(53),
        })))
    );
    let proxy = pod.spec.container("proxy").unwrap();
    assert_eq!(
        proxy.startup.as_deref(),
        Some(&Probe {
            period: seconds(1),
            failure_threshold: 60,
            ..default_probe(ProbeHandler::Http(HttpGet {
                host: Some("127.0.0.1".into()),
                port: TargetPort::Number(9901),
                path: "/ready?full".into(),
                https: true,
                headers: vec![
                    ("Host".into(), "proxy.example".into()),
                    ("X-Probe".into(), "".into())
                ],
            }))
        })
    );
}

#[test]
fn what_a_probe_leaves_out_gets_the_api_servers_defaults() {
    let bare = json!({"httpGet": {"port": 80}});
    let zero = json!({
        "httpGet": {"port": 80, "path": "", "scheme": ""},
        "initialDelaySeconds": 0, "periodSeconds": 0, "timeoutSeconds": 0,
        "successThreshold": 0, "failureThreshold": 0,
    });
    let http = ProbeHandler::Http(HttpGet {
        host: None,
        port: TargetPort::Number(80),
        path: "/".into(),
        https: false,
        headers: vec![],
    });
    for written in [bare, zero] {
        let pod = parsed(&with("/spec/containers/0/livenessProbe", written).to_string());
        assert_eq!(*liveness(&pod), default_probe(http.clone()));
        let json: Value = serde_json::from_str(&pod.json).unwrap();
        let mut shown = json["spec"]["containers"][0]["livenessProbe"].clone();
        shown.as_object_mut().unwrap().remove("initialDelaySeconds");
        assert_eq!(
            shown,
            json!({
                "httpGet": {"port": 80, "path": "/", "scheme": "HTTP"},
                "periodSeconds": 10, "timeoutSeconds": 1, "successThreshold": 1, "failureThreshold": 3,
            })
        );
    }
    let grpc = with(
        "/spec/containers/0/livenessProbe",
        json!({"grpc": {"port": 80, "mode": "Plaintext"}}),
    );
    let pod = parsed(&grpc.to_string());
    let expected = ProbeHandler::Grpc(GrpcCheck {
        port: 80,
        service: "".into(),
    });
    assert_eq!(*liveness(&pod), default_probe(expected));
    assert!(pod.json.contains("\"service\":\"\""));
}

#[test]
fn kubeadms_static_pods_are_taken() {
    let pod = parsed(include_str!("etcd.yaml"));
    let etcd = &pod.spec.containers[0];
    for probe in [&etcd.liveness, &etcd.readiness, &etcd.startup] {
        let ProbeHandler::Http(action) = &probe.as_ref().unwrap().handler else {
            panic!()
        };
        assert_eq!(action.port, TargetPort::Number(2381));
    }
}

#[test]
fn a_probe_has_exactly_one_handler() {
    for field in PROBES {
        container(
            field,
            json!({}),
            field,
            "Required value: a probe needs one of exec, httpGet, tcpSocket and grpc",
        );
        container(
            field,
            json!({"exec": {"command": ["a"]}, "grpc": {"port": 1}}),
            &format!("{field}.grpc"),
            "Forbidden: a probe has one handler; exec is given too",
        );
    }
    let all = json!({
        "exec": {"command": ["a"]}, "httpGet": {"port": 1}, "tcpSocket": {"port": 1}, "grpc": {"port": 1},
    });
    let one = |name: &str| {
        format!(
            "spec.containers[0].livenessProbe.{name}: Forbidden: a probe has one handler; exec is given too"
        )
    };
    check(
        &with("/spec/containers/0/livenessProbe", all),
        &["grpc", "httpGet", "tcpSocket"].map(one),
    );
}

#[test]
fn numbers_of_a_probe() {
    let probe = |field: &str, value: i64| {
        let mut probe = json!({"tcpSocket": {"port": 80}});
        probe[field] = value.into();
        probe
    };
    for kind in PROBES {
        for field in [
            "initialDelaySeconds",
            "timeoutSeconds",
            "periodSeconds",
            "successThreshold",
            "failureThreshold",
        ] {
            container(
                kind,
                probe(field, -1),
                &format!("{kind}.{field}"),
                "Invalid value: -1: must not be negative",
            );
        }
    }
    for kind in ["livenessProbe", "startupProbe"] {
        container(
            kind,
            probe("successThreshold", 2),
            &format!("{kind}.successThreshold"),
            "Invalid value: 2: must be 1; only a readiness probe may ask for more",
        );
        for bad in [0, -5] {
            container(
                kind,
                probe("terminationGracePeriodSeconds", bad),
                &format!("{kind}.terminationGracePeriodSeconds"),
                &format!("Invalid value: {bad}: must be at least 1"),
            );
        }
    }
}

#[test]
fn what_a_probe_does() {
    for (probe, field, message) in [
        (json!({"exec": {}}), "exec.command", "Required value"),
        (
            json!({"exec": {"command": []}}),
            "exec.command",
            "Required value",
        ),
        (
            json!({"httpGet": {"port": 80, "scheme": "https"}}),
            "httpGet.scheme",
            "Unsupported value: \"https\": supported values: \"HTTP\", \"HTTPS\"",
        ),
        (
            json!({"httpGet": {"port": 80, "httpHeaders": [{"name": "", "value": "a"}]}}),
            "httpGet.httpHeaders[0].name",
            "Required value",
        ),
        (
            json!({"httpGet": {"port": 80, "httpHeaders": [{"name": "A", "value": "b"}, {"name": "X_Y", "value": "a"}]}}),
            "httpGet.httpHeaders[1].name",
            "Invalid value: \"X_Y\": use letters, digits and '-'",
        ),
        (
            json!({"httpGet": {"port": 80, "httpHeaders": [{"name": "X", "value": "a\r\nHost: b"}]}}),
            "httpGet.httpHeaders[0].value",
            "Invalid value: \"a\\r\\nHost: b\": must not contain line breaks or other control characters",
        ),
        (
            json!({"grpc": {"port": 0}}),
            "grpc.port",
            "Required value: a port from 1 to 65535",
        ),
        (
            json!({"grpc": {"port": 65536}}),
            "grpc.port",
            "Invalid value: 65536: must be from 1 to 65535",
        ),
        (
            json!({"grpc": {"port": 1, "mode": "Tls"}}),
            "grpc.mode",
            "Unsupported value: \"Tls\": supported values: \"Plaintext\", \"TLS\"",
        ),
    ] {
        for kind in PROBES {
            container(kind, probe.clone(), &format!("{kind}.{field}"), message);
        }
    }
}

#[test]
fn ports_of_probes() {
    let port_name = "use up to 15 lower-case letters, digits and single '-', at least one letter, with a letter or digit at both ends";
    for (port, message) in [
        (
            json!(0),
            "Required value: a port from 1 to 65535, or the name of one".to_owned(),
        ),
        (
            json!(""),
            "Required value: a port from 1 to 65535, or the name of one".to_owned(),
        ),
        (
            json!(-1),
            "Invalid value: -1: must be from 1 to 65535".to_owned(),
        ),
        (
            json!(65536),
            "Invalid value: 65536: must be from 1 to 65535".to_owned(),
        ),
        (
            json!("8080"),
            "Invalid value: \"8080\": write a number without quotes".to_owned(),
        ),
        (
            json!("a--b"),
            format!("Invalid value: \"a--b\": {port_name}"),
        ),
        (
            json!("web"),
            "Not found: \"web\": no port of the container has a name; write a number, or name one under ports".to_owned(),
        ),
    ] {
        for handler in ["httpGet", "tcpSocket"] {
            container(
                "livenessProbe",
                json!({handler: {"port": port}}),
                &format!("livenessProbe.{handler}.port"),
                &message,
            );
        }
    }
    let mut pod = with(
        "/spec/containers/0/ports",
        json!([
            {"name": "http", "containerPort": 8080},
            {"containerPort": 8081},
            {"name": "admin", "containerPort": 8082},
        ]),
    );
    set(
        &mut pod,
        "/spec/containers/0/livenessProbe",
        json!({"tcpSocket": {"port": "web"}}),
    );
    check(
        &pod,
        &["spec.containers[0].livenessProbe.tcpSocket.port: Not found: \"web\": the named ports of the container are \"http\", \"admin\"".into()],
    );
    set(
        &mut pod,
        "/spec/containers/0/livenessProbe",
        json!({"tcpSocket": {"port": "admin", "host": "192.0.2.1"}}),
    );
    let expected = ProbeHandler::Tcp(TcpSocket {
        host: Some("192.0.2.1".into()),
        port: TargetPort::Number(8082),
    });
    assert_eq!(
        *liveness(&parsed(&pod.to_string())),
        default_probe(expected)
    );
}

#[test]
fn a_pod_of_the_api_server_keeps_what_can_never_work() {
    let pod = with(
        "/spec/containers/0/livenessProbe",
        json!({"httpGet": {"port": "web", "httpHeaders": [{"name": "X", "value": "a\n"}]}}),
    );
    let pod = parse(raw(&pod.to_string()), &api()).unwrap();
    let ProbeHandler::Http(action) = &liveness(&pod).handler else {
        panic!()
    };
    assert_eq!(action.port, TargetPort::Unknown("web".into()));
    assert_eq!(*action.headers, [("X".into(), "a\n".into())]);
}

#[test]
fn readiness_gates() {
    let gates = |kinds: &[&str]| -> Value {
        kinds
            .iter()
            .map(|kind| json!({"conditionType": kind}))
            .collect()
    };
    let pod = with(
        "/spec/readinessGates",
        gates(&["example.com/one", "two", "two"]),
    );
    assert_eq!(
        *parsed(&pod.to_string()).spec.readiness_gates,
        ["example.com/one".into(), "two".into(), "two".into()]
    );
    let field = |index| format!("spec.readinessGates[{index}].conditionType");
    check(
        &with("/spec/readinessGates", gates(&["", "a b"])),
        &[
            format!("{}: Required value", field(0)),
            format!(
                "{}: Invalid value: \"a b\": use up to 63 letters, digits, '-', '_' and '.', with a letter or digit at both ends, after an optional domain and '/'",
                field(1)
            ),
        ],
    );
}
