//! Critical pods on a full node.

use serde_json::{Value, json};

use crate::joined::{IMAGE, Joined, WAITS, bound, condition, wait_stdout};

/// A pod of the node with this CPU request.
fn requesting(name: &str, cpu: &str) -> Value {
    let mut pod = bound(name, WAITS);
    let requests = json!({ "cpu": cpu, "memory": "16Mi" });
    pod["spec"]["containers"][0]["resources"] = json!({ "requests": requests });
    pod
}

/// Waits until the pod's status says that it was preempted.
fn wait_preempted(joined: &Joined, name: &str) -> Value {
    let ended = joined.wait_pod(name, "is preempted", |pod| {
        pod["status"]["phase"] == "Failed"
    });
    let status = &ended["status"];
    assert_eq!(status["reason"], "Preempting", "{status}");
    assert_eq!(
        status["message"], "Preempted in order to admit critical pod",
        "{status}"
    );
    let conditions = status["conditions"].as_array().unwrap();
    let disrupted = conditions
        .iter()
        .find(|condition| condition["type"] == "DisruptionTarget")
        .unwrap();
    assert_eq!(disrupted["status"], "True", "{disrupted}");
    assert_eq!(disrupted["reason"], "TerminationByKubelet", "{disrupted}");
    let events = wait_stdout(&joined.kubectl, &["get", "events"], |text| {
        text.lines()
            .any(|line| line.contains(&format!("pod/{name} ")) && line.contains("Preempting"))
    });
    assert!(events.contains("Preempted in order to admit critical pod"));
    ended
}

/// Start or end time of the first container.
fn time<'a>(pod: &'a Value, state: &str, field: &str) -> &'a str {
    let state = &pod["status"]["containerStatuses"][0]["state"][state];
    state[field].as_str().unwrap()
}

#[test]
fn a_critical_pod_preempts_a_burstable_one_on_a_full_node() {
    let joined = Joined::start("worker");
    let node = joined.cluster.api().get("nodes", "", "worker").unwrap();
    let node = node.unwrap();
    let all = node["status"]["allocatable"]["cpu"].as_str().unwrap();
    joined.create(&requesting("lesser", all));
    let lesser = joined.wait_ready("lesser");
    assert_eq!(lesser["status"]["qosClass"], "Burstable");

    let mut critical = requesting("critical", "50m");
    critical["spec"]["priorityClassName"] = "system-node-critical".into();
    joined.create(&critical);
    let critical = joined.wait_ready("critical");
    assert_eq!(critical["spec"]["priority"], 2_000_001_000);
    let ended = wait_preempted(&joined, "lesser");
    let (begin, end) = (
        time(&critical, "running", "startedAt"),
        time(&ended, "terminated", "finishedAt"),
    );
    // Timestamps in whole seconds sort as text.
    assert!(
        begin >= end,
        "it began at {begin}, the other ended at {end}"
    );

    let delete = |name: &str| {
        let words = ["delete", "pod", name, "--timeout=60s"];
        joined.kubectl.stdout(&words);
    };
    delete("lesser");
    delete("critical");
    joined.create(&requesting("second", all));
    joined.wait_ready("second");
    // Static pods are critical.
    let manifest = format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: static}}\nspec:\n  containers:\n  \
         - {{name: main, image: {IMAGE:?}, imagePullPolicy: IfNotPresent, command: [sleep, '1000'], \
         resources: {{requests: {{cpu: 50m}}}}}}\n  terminationGracePeriodSeconds: 1\n"
    );
    joined
        .agent
        .write_manifest("static.yaml", &manifest)
        .unwrap();
    let fixed = joined.wait_ready("static-worker");
    assert_eq!(condition(&fixed, "Ready"), "True");
    wait_preempted(&joined, "second");

    let metrics = joined.agent.health("/metrics").unwrap().body;
    let metrics = String::from_utf8_lossy(&metrics);
    let line = "kubelet_preemptions{preemption_signal=\"cpu\"} 2";
    assert!(metrics.lines().any(|found| found == line), "{metrics}");
    joined.agent.remove_manifest("static.yaml").unwrap();
    delete("second");
    joined.wait_empty();
    joined.cluster.no_violations().unwrap();
}
