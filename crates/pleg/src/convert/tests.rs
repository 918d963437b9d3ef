//! Tests of `convert`.

use rubelet_api::probe::{HttpGet, TargetPort};

use super::*;

fn seen(annotations: &[(&str, &str)]) -> ObservedContainer {
    let annotations = annotations
        .iter()
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
        .collect();
    let status = v1::ContainerStatus {
        annotations,
        ..v1::ContainerStatus::default()
    };
    container(status, "s".into(), String::new())
}

#[test]
fn the_user_is_the_one_that_the_runtime_reports() {
    let user = |linux| {
        let status = v1::ContainerStatus {
            user: Some(v1::ContainerUser { linux }),
            ..v1::ContainerStatus::default()
        };
        container(status, "s".into(), String::new()).user
    };
    assert_eq!(user(None), None);
    let linux = v1::LinuxContainerUser {
        uid: 33,
        gid: 34,
        supplemental_groups: vec![34, 35],
    };
    let expected = ContainerUser {
        uid: 33,
        gid: 34,
        supplemental_groups: vec![34, 35],
    };
    assert_eq!(user(Some(linux)), Some(Box::new(expected)));
}

#[test]
fn recursive_read_only_mounts_are_those_that_the_runtime_reports() {
    let mount = |path: &str, recursive_read_only| v1::Mount {
        container_path: path.to_owned(),
        readonly: true,
        recursive_read_only,
        ..v1::Mount::default()
    };
    let status = v1::ContainerStatus {
        mounts: vec![mount("/a", false), mount("/b", true)],
        ..v1::ContainerStatus::default()
    };
    let found = container(status, "s".into(), String::new());
    assert_eq!(found.recursive_read_only, ["/b".into()]);
}

#[test]
fn the_pre_stop_hook_is_read_from_the_annotations_of_the_container() {
    let hook = r#"{"httpGet":{"path":"/bye","port":"admin","scheme":"HTTPS"}}"#;
    let ports = r#"[{"name":"admin","containerPort":9901,"protocol":"TCP"}]"#;
    let expected = |port| {
        Some(Arc::new(Hook::Http(HttpGet {
            host: None,
            port,
            path: "/bye".into(),
            https: true,
            headers: Vec::new(),
        })))
    };
    assert_eq!(
        seen(&[(PRE_STOP, hook), (PORTS, ports)]).pre_stop,
        expected(TargetPort::Number(9901))
    );
    assert_eq!(
        seen(&[(PRE_STOP, hook)]).pre_stop,
        expected(TargetPort::Unknown("admin".into()))
    );
    assert_eq!(seen(&[(PORTS, ports)]).pre_stop, None);
    assert_eq!(seen(&[(PRE_STOP, "junk")]).pre_stop, None);
}

#[test]
fn an_undefined_state_is_unknown() {
    for state in [4, -1, i32::MIN] {
        let status = v1::ContainerStatus {
            state,
            ..v1::ContainerStatus::default()
        };
        let found = container(status, "s".into(), String::new());
        assert_eq!(found.phase, ContainerPhase::Unknown, "{state}");
    }
}

#[test]
fn the_grace_period_is_read_from_the_annotations_of_the_container() {
    for (deletion, pod, expected) in [
        (None, None, None),
        (None, Some("30"), Some(30)),
        (Some("5"), Some("30"), Some(5)),
        (Some("60"), Some("30"), Some(60)),
        (Some("0"), Some("30"), Some(0)),
        (Some("junk"), Some("30"), Some(30)),
        (None, Some("-1"), Some(0)),
        (None, Some(""), None),
    ] {
        let mut annotations = Vec::new();
        annotations.extend(deletion.map(|value| (DELETION_GRACE_PERIOD, value)));
        annotations.extend(pod.map(|value| (GRACE_PERIOD, value)));
        assert_eq!(
            seen(&annotations).grace,
            expected.map(Duration::from_secs),
            "{deletion:?} {pod:?}"
        );
    }
}
