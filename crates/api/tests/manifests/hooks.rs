//! Lifecycle hooks: what a manifest says arrives, also by way of a container's annotations.

use std::time::Duration;

use rubelet_api::probe::{Hook, HttpGet, Lifecycle, TargetPort, TcpSocket, hook_from_annotation};
use serde_json::{Value, json};

use crate::{
    invalid::{check, container},
    support::{parsed, set, with},
};

const LIFECYCLE: &str = "/spec/containers/0/lifecycle";

fn lifecycle(written: Value) -> Option<Lifecycle> {
    let pod = parsed(&with(LIFECYCLE, written).to_string());
    pod.spec.containers[0].lifecycle.as_deref().cloned()
}

fn http(port: TargetPort) -> Hook {
    Hook::Http(HttpGet {
        host: None,
        port,
        path: "/".into(),
        https: false,
        headers: vec![],
    })
}

#[test]
fn every_hook_arrives() {
    let pod = parsed(include_str!("full.yaml"));
    let main = pod.spec.container("main").unwrap().lifecycle.as_deref();
    assert_eq!(
        main,
        Some(&Lifecycle {
            post_start: Some(Hook::Exec(vec!["touch".into(), "/tmp/alive".into()])),
            pre_stop: Some(Hook::Sleep(Duration::from_secs(5))),
            pre_stop_json: Some(r#"{"sleep":{"seconds":5}}"#.into()),
        })
    );
    let proxy = pod.spec.container("proxy").unwrap().lifecycle.as_deref();
    assert_eq!(
        proxy,
        Some(&Lifecycle {
            post_start: None,
            pre_stop: Some(http(TargetPort::Number(9901))),
            pre_stop_json: Some(
                r#"{"httpGet":{"path":"/","port":"admin","scheme":"HTTP"}}"#.into()
            ),
        })
    );
}

#[test]
fn a_connection_is_taken_as_a_hook_as_the_api_server_takes_it() {
    let found = lifecycle(json!({"postStart": {"tcpSocket": {"port": 80, "host": "a"}}}));
    let expected = Hook::Tcp(TcpSocket {
        host: Some("a".into()),
        port: TargetPort::Number(80),
    });
    assert_eq!(found.unwrap().post_start, Some(expected));
}

#[test]
fn a_lifecycle_without_hooks_is_none() {
    for written in [json!({}), json!({"postStart": null})] {
        assert_eq!(lifecycle(written), None);
    }
}

#[test]
fn what_the_api_server_refuses_in_hooks_is_refused() {
    for hook in ["postStart", "preStop"] {
        for (written, field, message) in [
            (
                json!({}),
                "",
                "Required value: a hook needs one of exec, httpGet, tcpSocket and sleep",
            ),
            (
                json!({"httpGet": {"port": 80}, "sleep": {"seconds": 1}}),
                ".sleep",
                "Forbidden: a hook has one handler; httpGet is given too",
            ),
            (
                json!({"exec": {"command": []}}),
                ".exec.command",
                "Required value",
            ),
            (
                json!({"httpGet": {"port": 80, "scheme": "FTP"}}),
                ".httpGet.scheme",
                "Unsupported value: \"FTP\": supported values: \"HTTP\", \"HTTPS\"",
            ),
            (
                json!({"tcpSocket": {"port": 65536}}),
                ".tcpSocket.port",
                "Invalid value: 65536: must be from 1 to 65535",
            ),
            (
                json!({"sleep": {"seconds": 31}}),
                ".sleep.seconds",
                "Invalid value: 31: must be from 0 to terminationGracePeriodSeconds, which is 30",
            ),
            (
                json!({"sleep": {"seconds": -1}}),
                ".sleep.seconds",
                "Invalid value: -1: must be from 0 to terminationGracePeriodSeconds, which is 30",
            ),
        ] {
            container(
                "lifecycle",
                json!({hook: written}),
                &format!("lifecycle.{hook}{field}"),
                message,
            );
        }
    }
}

#[test]
fn a_sleep_may_last_for_the_whole_grace_period() {
    for (grace, seconds) in [(0, 0), (30, 30), (90, 90), (30, 0)] {
        let mut pod = with(
            LIFECYCLE,
            json!({"preStop": {"sleep": {"seconds": seconds}}}),
        );
        set(
            &mut pod,
            "/spec/terminationGracePeriodSeconds",
            json!(grace),
        );
        let pod = parsed(&pod.to_string());
        let lifecycle = pod.spec.containers[0].lifecycle.as_ref().unwrap();
        assert_eq!(
            lifecycle.pre_stop,
            Some(Hook::Sleep(Duration::from_secs(seconds)))
        );
    }
}

#[test]
fn an_invalid_grace_period_is_reported_once() {
    let mut pod = with(LIFECYCLE, json!({"preStop": {"sleep": {"seconds": 5}}}));
    set(&mut pod, "/spec/terminationGracePeriodSeconds", json!(-1));
    check(
        &pod,
        &["spec.terminationGracePeriodSeconds: Invalid value: -1: must not be negative".into()],
    );
}

#[test]
fn a_hook_comes_back_from_its_annotation() {
    for hook in [
        json!({"exec": {"command": ["sh", "-c", "kill \"1\""]}}),
        json!({"httpGet": {"port": "web", "path": "/a?b", "scheme": "HTTPS", "host": "h", "httpHeaders": [{"name": "A", "value": "b"}]}}),
        json!({"httpGet": {"port": 8080}}),
        json!({"sleep": {"seconds": 7}}),
        json!({"tcpSocket": {"port": "web"}}),
    ] {
        let ports = json!([{"name": "web", "containerPort": 8080, "protocol": "TCP"}]);
        let mut pod = with(LIFECYCLE, json!({"preStop": hook}));
        set(&mut pod, "/spec/containers/0/ports", ports.clone());
        let pod = parsed(&pod.to_string());
        let lifecycle = pod.spec.containers[0].lifecycle.as_ref().unwrap();
        let annotation = lifecycle.pre_stop_json.as_deref().unwrap();
        assert_eq!(
            hook_from_annotation(annotation, Some(&ports.to_string())),
            lifecycle.pre_stop
        );
    }
}

#[test]
fn a_hook_is_read_from_what_other_kubelets_wrote() {
    let named = r#"{"httpGet":{"port":"web"}}"#;
    let ports = r#"[{"name":"dns","containerPort":53,"protocol":"UDP"},{"name":"web","hostPort":80,"containerPort":8080}]"#;
    let unknown = || Some(http(TargetPort::Unknown("web".into())));
    for (json, ports, expected) in [
        (named, Some(ports), Some(http(TargetPort::Number(8080)))),
        (named, None, unknown()),
        (named, Some("[]"), unknown()),
        (named, Some("junk"), unknown()),
        (
            r#"{"exec":{"command":["a"]}}"#,
            None,
            Some(Hook::Exec(vec!["a".into()])),
        ),
        (
            r#"{"sleep":{"seconds":4000}}"#,
            None,
            Some(Hook::Sleep(Duration::from_secs(4000))),
        ),
        ("{}", None, None),
        ("", None, None),
        ("null", None, None),
        (r#"{"exec":{}}"#, None, None),
        (r#"{"httpGet":{"port":70000}}"#, None, None),
        (r#"{"sleep":{"seconds":"x"}}"#, None, None),
    ] {
        assert_eq!(hook_from_annotation(json, ports), expected, "{json}");
    }
}
