//! Tables: rows as kubectl prints them.

use serde_json::json;

use super::*;

/// Columns and cells of an object that was created an hour ago.
fn row(plural: &str, object: Value) -> Vec<(String, Value)> {
    let mut object = object;
    object["metadata"]["creationTimestamp"] = "2026-03-01T11:00:00Z".into();
    let now = "2026-03-01T12:00:00Z".parse().unwrap();
    let kind = Kind::of(plural).unwrap();
    let table = table(kind, &[&object], &json!({}), Include::Metadata, now);
    let names = table["columnDefinitions"].as_array().unwrap().iter();
    let names = names.map(|one| one["name"].as_str().unwrap().to_owned());
    let cells = table["rows"][0]["cells"].as_array().unwrap().clone();
    assert_eq!(names.len(), cells.len());
    names.zip(cells).collect()
}

fn cell(plural: &str, object: Value, column: &str) -> Value {
    let mut cells = row(plural, object).into_iter();
    cells.find(|(name, _)| name == column).unwrap().1
}

#[test]
fn a_node_is_a_row_with_its_state() {
    let node = json!({
        "metadata": { "name": "n", "labels": {
            "node-role.kubernetes.io/worker": "", "kubernetes.io/role": "edge",
        } },
        "spec": { "unschedulable": true },
        "status": {
            "conditions": [{ "type": "Ready", "status": "Unknown" }],
            "addresses": [{ "type": "InternalIP", "address": "10.0.0.1" }],
            "nodeInfo": { "kubeletVersion": "v1.36.2", "kernelVersion": "6.1", "architecture": "arm64" },
        },
    });
    let cells: Vec<Value> = row("nodes", node)
        .into_iter()
        .map(|(_, cell)| cell)
        .collect();
    assert_eq!(
        cells,
        [
            "n",
            "NotReady,SchedulingDisabled",
            "edge,worker",
            "60m",
            "v1.36.2",
            "10.0.0.1",
            "<none>",
            "<unknown>",
            "6.1 (arm64)",
            "<unknown>"
        ]
    );
    assert_eq!(cell("nodes", json!({}), "Status"), "Unknown");
}

#[test]
fn the_status_of_a_pod_is_the_first_reason() {
    let ended = |code: i64, reason: &str| json!({ "state": { "terminated": { "exitCode": code, "reason": reason } } });
    let up = json!({ "ready": true, "state": { "running": {} } });
    let waits = |reason: &str| json!({ "state": { "waiting": { "reason": reason } } });
    let init = json!({ "initContainers": [{ "name": "a" }, { "name": "b" }] });
    for (spec, status, wanted) in [
        (json!({}), json!({ "phase": "Pending" }), "Pending"),
        (
            json!({}),
            json!({ "phase": "Failed", "reason": "Evicted" }),
            "Evicted",
        ),
        (
            json!({}),
            json!({ "phase": "Pending", "conditions": [
                { "type": "PodScheduled", "reason": "SchedulingGated" },
            ] }),
            "SchedulingGated",
        ),
        (
            init.clone(),
            json!({ "initContainerStatuses": [ended(0, "Completed"), waits("PodInitializing")] }),
            "Init:1/2",
        ),
        (
            init.clone(),
            json!({ "initContainerStatuses": [ended(1, "")] }),
            "Init:ExitCode:1",
        ),
        (
            init,
            json!({ "initContainerStatuses": [waits("ErrImagePull")] }),
            "Init:ErrImagePull",
        ),
        (
            json!({}),
            json!({ "containerStatuses": [waits("CrashLoopBackOff"), ended(1, "Error")] }),
            "CrashLoopBackOff",
        ),
        (
            json!({}),
            json!({ "containerStatuses": [ended(0, "Completed"), ended(2, "Error")] }),
            "Error",
        ),
        (
            json!({}),
            json!({
                "conditions": [{ "type": "Ready", "status": "True" }],
                "containerStatuses": [ended(0, "Completed"), up],
            }),
            "Running",
        ),
        (
            json!({}),
            json!({ "containerStatuses": [ended(0, "Completed"), up] }),
            "NotReady",
        ),
    ] {
        let pod = json!({ "spec": spec, "status": status });
        assert_eq!(cell("pods", pod, "Status"), wanted, "{status}");
    }
    let mut pod = json!({ "metadata": { "deletionTimestamp": "2026-03-01T12:00:00Z" } });
    assert_eq!(cell("pods", pod.clone(), "Status"), "Terminating");
    pod["status"] = json!({ "reason": "NodeLost" });
    assert_eq!(cell("pods", pod, "Status"), "Unknown");
}

#[test]
fn sidecars_are_counted_and_restarts_have_a_time() {
    let pod = json!({
        "spec": {
            "initContainers": [{ "name": "s", "restartPolicy": "Always" }, { "name": "i" }],
            "containers": [{ "name": "a" }],
            "readinessGates": [{ "conditionType": "x" }, { "conditionType": "y" }],
        },
        "status": {
            "conditions": [{ "type": "x", "status": "True" }],
            "initContainerStatuses": [
                {
                    "name": "s", "started": true, "ready": true, "restartCount": 1,
                    "lastState": { "terminated": { "finishedAt": "2026-03-01T11:58:00Z" } },
                },
                { "name": "i", "restartCount": 5, "state": { "terminated": { "exitCode": 0 } } },
            ],
            "containerStatuses": [{ "name": "a", "restartCount": 2, "state": { "running": {} } }],
        },
    });
    assert_eq!(cell("pods", pod.clone(), "Ready"), "1/2");
    assert_eq!(cell("pods", pod.clone(), "Restarts"), "3 (2m ago)");
    assert_eq!(cell("pods", pod, "Readiness Gates"), "1/2");
}

#[test]
fn events_of_both_groups_have_the_same_row() {
    let object = json!({ "kind": "Pod", "name": "web", "fieldPath": "spec.containers{a}" });
    let older = json!({
        "metadata": { "name": "web.1" }, "involvedObject": object,
        "type": "Warning", "reason": "BackOff", "message": "back-off\n",
        "source": { "component": "kubelet", "host": "n1" }, "count": 7,
        "firstTimestamp": "2026-03-01T11:00:00Z", "lastTimestamp": "2026-03-01T11:59:30Z",
    });
    let newer = json!({
        "metadata": { "name": "web.1" }, "involvedObject": object,
        "type": "Warning", "reason": "BackOff", "message": "back-off",
        "reportingComponent": "kubelet", "reportingInstance": "n1",
        "eventTime": "2026-03-01T11:00:00.000000Z",
        "series": { "count": 7, "lastObservedTime": "2026-03-01T11:59:30.000000Z" },
    });
    assert_eq!(row("events", older.clone()), row("events", newer));
    let cells: Vec<Value> = row("events", older)
        .into_iter()
        .map(|(_, cell)| cell)
        .collect();
    assert_eq!(cells[..4], ["30s", "Warning", "BackOff", "pod/web"]);
    assert_eq!(cells[5..8], ["kubelet, n1", "back-off", "60m"]);
    assert_eq!(cells[8], 7);
}

#[test]
fn other_kinds_have_the_columns_of_kubectl() {
    for (plural, object, column, wanted) in [
        (
            "configmaps",
            json!({ "data": { "a": "" }, "binaryData": { "b": "" } }),
            "Data",
            json!(2),
        ),
        (
            "services",
            json!({ "spec": { "ports": [{ "port": 80, "nodePort": 30080, "protocol": "TCP" }] } }),
            "Port(s)",
            json!("80:30080/TCP"),
        ),
        (
            "services",
            json!({ "spec": { "type": "LoadBalancer" } }),
            "External-IP",
            json!("<pending>"),
        ),
        (
            "certificatesigningrequests",
            json!({ "status": { "certificate": "x", "conditions": [{ "type": "Approved" }] } }),
            "Condition",
            json!("Approved,Issued"),
        ),
        (
            "certificatesigningrequests",
            json!({ "spec": { "expirationSeconds": 86_400 } }),
            "RequestedDuration",
            json!("24h"),
        ),
        ("csidrivers", json!({}), "AttachRequired", json!(true)),
        (
            "csinodes",
            json!({ "spec": { "drivers": [{}] } }),
            "Drivers",
            json!(1),
        ),
        ("serviceaccounts", json!({}), "Age", json!("60m")),
    ] {
        assert_eq!(cell(plural, object, column), wanted, "{plural} {column}");
    }
}

#[test]
fn ages_are_formatted_as_in_kubectl() {
    const DAY: i128 = 86_400;
    for (seconds, text) in [
        (-2, "<invalid>"),
        (-1, "0s"),
        (119, "119s"),
        (120, "2m"),
        (125, "2m5s"),
        (599, "9m59s"),
        (10_799, "179m"),
        (10_860, "3h1m"),
        (28_800, "8h"),
        (2 * DAY + 3_600, "2d1h"),
        (8 * DAY + 3_600, "8d"),
        (731 * DAY, "2y1d"),
        (2920 * DAY, "8y"),
    ] {
        assert_eq!(age::human(seconds * 1000), text, "{seconds}");
    }
    assert_eq!(age::since(None, Timestamp::UNIX_EPOCH), "<unknown>");
}
