//! What `get pods` says, case by case.

use serde_json::{Value, json};

use super::*;

fn now() -> Timestamp {
    "2026-03-01T12:00:00Z".parse().expect("a time")
}

fn row(pod: &Value) -> Vec<String> {
    cells(pod, now())
        .iter()
        .map(|cell| cell.as_str().unwrap_or_default().to_owned())
        .collect()
}

fn running(name: &str) -> Value {
    json!({ "name": name, "ready": true, "restartCount": 0,
            "state": { "running": { "startedAt": "2026-03-01T11:00:00Z" } } })
}

fn waiting(name: &str, reason: &str) -> Value {
    json!({ "name": name, "ready": false, "restartCount": 0,
            "state": { "waiting": { "reason": reason } } })
}

fn terminated(name: &str, code: i64, reason: &str) -> Value {
    json!({ "name": name, "ready": false, "restartCount": 0,
            "state": { "terminated": { "exitCode": code, "reason": reason } } })
}

fn pod(phase: &str, containers: &[Value]) -> Value {
    let specs: Vec<Value> = containers
        .iter()
        .map(|status| json!({ "name": status["name"] }))
        .collect();
    json!({
        "metadata": { "name": "web-n1", "creationTimestamp": "2026-03-01T09:00:00Z" },
        "spec": { "nodeName": "n1", "containers": specs },
        "status": { "phase": phase, "containerStatuses": containers },
    })
}

fn with_init(mut pod: Value, specs: Value, statuses: Value) -> Value {
    pod["spec"]["initContainers"] = specs;
    pod["status"]["initContainerStatuses"] = statuses;
    pod
}

#[test]
fn a_running_pod_fills_every_column() {
    let mut pod = pod("Running", &[running("a"), running("b")]);
    pod["status"]["podIPs"] = json!([{ "ip": "10.0.0.7" }]);
    assert_eq!(
        row(&pod),
        [
            "web-n1", "2/2", "Running", "0", "3h", "10.0.0.7", "n1", "<none>", "<none>"
        ]
    );
}

#[test]
fn status_names_what_keeps_a_pod_from_running() {
    let mut signalled = terminated("a", 137, "");
    signalled["state"]["terminated"]["signal"] = 9.into();
    for (phase, containers, ready, status) in [
        ("Pending", vec![], "0/0", "Pending"),
        (
            "Pending",
            vec![waiting("a", "ContainerCreating")],
            "0/1",
            "ContainerCreating",
        ),
        (
            "Pending",
            vec![waiting("a", "ImagePullBackOff")],
            "0/1",
            "ImagePullBackOff",
        ),
        (
            "Running",
            vec![waiting("a", "CrashLoopBackOff"), running("b")],
            "1/2",
            "CrashLoopBackOff",
        ),
        (
            "Running",
            vec![running("a"), waiting("b", "ErrImagePull")],
            "1/2",
            "ErrImagePull",
        ),
        ("Running", vec![waiting("a", "")], "0/1", "Running"),
        (
            "Succeeded",
            vec![terminated("a", 0, "Completed")],
            "0/1",
            "Completed",
        ),
        ("Failed", vec![terminated("a", 1, "Error")], "0/1", "Error"),
        (
            "Failed",
            vec![terminated("a", 137, "OOMKilled")],
            "0/1",
            "OOMKilled",
        ),
        ("Failed", vec![terminated("a", 3, "")], "0/1", "ExitCode:3"),
        ("Failed", vec![signalled], "0/1", "Signal:9"),
        (
            "Failed",
            vec![terminated("a", 0, "Completed"), terminated("b", 1, "Error")],
            "0/2",
            "Error",
        ),
        (
            "Running",
            vec![terminated("a", 0, "Completed"), running("b")],
            "1/2",
            "NotReady",
        ),
    ] {
        let row = row(&pod(phase, &containers));
        assert_eq!(
            (row[1].as_str(), row[2].as_str()),
            (ready, status),
            "{containers:?}"
        );
    }
}

#[test]
fn a_ready_pod_with_a_completed_container_is_running() {
    let mut pod = pod("Running", &[terminated("a", 0, "Completed"), running("b")]);
    pod["status"]["conditions"] = json!([{ "type": "Ready", "status": "True" }]);
    assert_eq!(row(&pod)[2], "Running");
}

#[test]
fn init_containers_are_counted_while_they_run() {
    let specs = json!([{ "name": "i" }, { "name": "j" }]);
    let blocked = || pod("Pending", &[waiting("a", "PodInitializing")]);
    for (statuses, status) in [
        (
            json!([
                waiting("i", "PodInitializing"),
                waiting("j", "PodInitializing")
            ]),
            "Init:0/2",
        ),
        (
            json!([running("i"), waiting("j", "PodInitializing")]),
            "Init:0/2",
        ),
        (
            json!([
                terminated("i", 0, "Completed"),
                waiting("j", "PodInitializing")
            ]),
            "Init:1/2",
        ),
        (
            json!([terminated("i", 1, "Error"), waiting("j", "")]),
            "Init:Error",
        ),
        (
            json!([terminated("i", 7, ""), waiting("j", "")]),
            "Init:ExitCode:7",
        ),
        (
            json!([waiting("i", "CrashLoopBackOff"), waiting("j", "")]),
            "Init:CrashLoopBackOff",
        ),
        (
            json!([
                terminated("i", 0, "Completed"),
                terminated("j", 0, "Completed")
            ]),
            "PodInitializing",
        ),
    ] {
        let row = row(&with_init(blocked(), specs.clone(), statuses.clone()));
        assert_eq!(
            (row[1].as_str(), row[2].as_str()),
            ("0/1", status),
            "{statuses}"
        );
    }
}

#[test]
fn a_sidecar_counts_as_a_container_that_stays_up() {
    let specs = json!([{ "name": "proxy", "restartPolicy": "Always" }, { "name": "j" }]);
    let mut proxy = running("proxy");
    proxy["started"] = true.into();
    proxy["restartCount"] = 2.into();
    let starting = with_init(
        pod("Pending", &[waiting("a", "PodInitializing")]),
        specs.clone(),
        json!([proxy, running("j")]),
    );
    assert_eq!(row(&starting)[1..4], ["1/2", "Init:1/2", "2"]);
    let up = with_init(
        pod("Running", &[running("a")]),
        specs,
        json!([proxy, terminated("j", 0, "Completed")]),
    );
    assert_eq!(row(&up)[1..4], ["2/2", "Running", "2"]);
}

#[test]
fn restarts_say_when_the_last_one_was() {
    let mut container = running("a");
    container["restartCount"] = 3.into();
    container["lastState"] = json!({ "terminated": { "finishedAt": "2026-03-01T11:55:00Z" } });
    let mut other = running("b");
    other["restartCount"] = 1.into();
    other["lastState"] = json!({ "terminated": { "finishedAt": "2026-03-01T10:00:00Z" } });
    assert_eq!(row(&pod("Running", &[container, other]))[3], "4 (5m ago)");
}

#[test]
fn the_nodes_own_reason_and_deletion_come_first() {
    let mut evicted = pod("Failed", &[]);
    evicted["status"]["reason"] = "Evicted".into();
    assert_eq!(row(&evicted)[2], "Evicted");
    let mut going = pod("Running", &[running("a")]);
    going["metadata"]["deletionTimestamp"] = "2026-03-01T12:00:00Z".into();
    assert_eq!(row(&going)[2], "Terminating");
    going["status"]["phase"] = "Succeeded".into();
    going["status"]["containerStatuses"] = json!([terminated("a", 0, "Completed")]);
    assert_eq!(row(&going)[2], "Completed");
}

#[test]
fn a_status_that_waits_says_when_the_next_try_is() {
    let with = |mut pod: Value, times: Value| {
        pod["metadata"]["annotations"] = json!({ NEXT_TRY_ANNOTATION: times.to_string() });
        pod
    };
    let crashing = || {
        pod(
            "Running",
            &[
                running("a"),
                waiting("b", "CrashLoopBackOff"),
                waiting("c", "ErrImagePull"),
            ],
        )
    };
    let soon = json!({ "b": "2026-03-01T12:00:38Z", "c": "2026-03-01T12:00:05Z" });
    for (pod, status) in [
        (
            with(crashing(), soon.clone()),
            "CrashLoopBackOff (try in 38s)",
        ),
        (
            with(crashing(), json!({ "b": "2026-03-01T12:00:10.9Z" })),
            "CrashLoopBackOff (try in 10s)",
        ),
        (
            with(crashing(), json!({ "b": "2026-03-01T12:00:00.2Z" })),
            "CrashLoopBackOff (try in 1s)",
        ),
        (
            with(crashing(), json!({ "b": "2026-03-01T12:04:00Z" })),
            "CrashLoopBackOff (try in 4m)",
        ),
        (
            with(crashing(), json!({ "b": "2026-03-01T11:59:59Z" })),
            "CrashLoopBackOff",
        ),
        (
            with(crashing(), json!({ "c": "2026-03-01T12:01:00Z" })),
            "CrashLoopBackOff",
        ),
        (with(crashing(), json!("nonsense")), "CrashLoopBackOff"),
        (
            with(pod("Running", &[running("b")]), soon.clone()),
            "Running",
        ),
        (
            with(
                pod("Pending", &[waiting("b", "ContainerCreating")]),
                soon.clone(),
            ),
            "ContainerCreating (try in 38s)",
        ),
        (
            with(
                with_init(
                    pod("Pending", &[waiting("c", "PodInitializing")]),
                    json!([{ "name": "b" }]),
                    json!([waiting("b", "CrashLoopBackOff")]),
                ),
                soon.clone(),
            ),
            "Init:CrashLoopBackOff (try in 38s)",
        ),
        (
            with(
                with_init(
                    pod("Pending", &[waiting("c", "PodInitializing")]),
                    json!([{ "name": "b" }]),
                    json!([waiting("b", "PodInitializing")]),
                ),
                soon.clone(),
            ),
            "Init:0/1 (try in 38s)",
        ),
    ] {
        assert_eq!(row(&pod)[2], status, "{}", pod["metadata"]);
    }
    let mut going = with(crashing(), soon);
    going["metadata"]["deletionTimestamp"] = "2026-03-01T12:00:00Z".into();
    assert_eq!(row(&going)[2], "Terminating");
}

#[test]
fn readiness_gates_are_counted_in_the_wide_columns() {
    let mut gated = pod("Running", &[running("a")]);
    gated["spec"]["readinessGates"] =
        json!([{ "conditionType": "x/y" }, { "conditionType": "x/z" }]);
    gated["status"]["conditions"] = json!([{ "type": "x/z", "status": "True" }]);
    assert_eq!(row(&gated)[8], "1/2");
    let headings: Vec<_> = COLUMNS.iter().map(|column| column.name).collect();
    assert_eq!(headings[8], "Readiness Gates");
}

#[test]
fn ephemeral_containers_do_not_count() {
    let mut debugged = pod("Running", &[running("a")]);
    debugged["spec"]["ephemeralContainers"] = json!([{ "name": "d" }]);
    debugged["status"]["ephemeralContainerStatuses"] =
        json!([terminated("d", 1, "Error"), waiting("e", "ErrImagePull")]);
    assert_eq!(row(&debugged)[1..4], ["1/1", "Running", "0"]);
}
