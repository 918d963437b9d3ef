//! Readiness gates: conditions that other components set.

use anyhow::Result;
use rubelet_testbed::Node;
use rubelet_testbed::manifest::{pod, waiting};
use rubelet_testbed::status::{condition, container, is_ready, restarts};
use serde_json::{Value, json};

use crate::outside::kubectl::Kubectl;

#[test]
fn readiness_gates_are_set_through_the_socket() -> Result<()> {
    let node = Node::shared()?;
    let gates = ["example.com/one", "example.com/two"];
    let spec = json!({
        "readinessGates": gates.map(|gate| json!({ "conditionType": gate })),
        "containers": [waiting("main")],
    });
    node.apply(&pod("gated", &spec))?;
    let set = |gate: &str, status: &str| -> Result<Value> {
        let path = "/api/v1/namespaces/default/pods/gated-testnode/status";
        let condition = json!({ "type": gate, "status": status, "reason": "Tested" });
        let patch = json!({ "status": { "conditions": [condition] } });
        let answer = node.agent().patch(path, "strategic-merge-patch", &patch)?;
        assert_eq!(answer.status, 200, "{}", answer.text());
        Ok(serde_json::from_slice(&answer.body)?)
    };
    let seen = node.wait("gated", "runs behind its gates", |pod| {
        condition(pod, "ContainersReady")["status"] == "True"
    })?;
    let ready = condition(&seen, "Ready");
    assert_eq!(ready["status"], "False");
    assert_eq!(ready["reason"], "ReadinessGatesNotReady");
    let message = ready["message"].as_str().unwrap();
    for gate in gates {
        let part = format!("pod readiness gate \"{gate}\" does not exist");
        assert!(message.contains(&part), "{message}");
    }
    assert_eq!(container(&seen, "main")["ready"], true);
    let wide = node.cli(&[
        "get",
        "pods",
        "-o",
        "wide",
        "gated-testnode",
        "--no-headers",
    ])?;
    assert!(wide.trim_end().ends_with("0/2"), "{wide}");
    let why = node.cli(&["why", "gated-testnode"])?;
    assert!(why.contains("is a readiness gate"), "{why}");

    let answer = set(gates[0], "True")?;
    assert_eq!(
        condition(&answer, gates[0])["status"],
        "True",
        "in the answer"
    );
    let seen = node.wait("gated", "waits for the other gate", |pod| {
        let message = &condition(pod, "Ready")["message"];
        message
            .as_str()
            .is_some_and(|text| !text.contains(gates[0]))
    })?;
    assert!(!is_ready(&seen));
    let kubectl = Kubectl::to(&node.agent().api_socket());
    if kubectl.knows("--subresource") {
        let patch = json!({ "status": { "conditions": [
            { "type": gates[1], "status": "True" },
        ]}});
        let patch = patch.to_string();
        let said = kubectl.stdout(&[
            "patch",
            "pod",
            "gated-testnode",
            "--subresource=status",
            "-p",
            &patch,
        ]);
        assert_eq!(said, "pod/gated-testnode patched\n");
    } else {
        set(gates[1], "True")?;
    }
    node.wait_ready("gated")?;
    set(gates[0], "False")?;
    let seen = node.wait("gated", "is closed", |pod| !is_ready(pod))?;
    assert_eq!(
        condition(&seen, "Ready")["message"],
        format!(
            "the status of pod readiness gate \"{}\" is not \"True\", but False",
            gates[0]
        )
    );
    assert_eq!(restarts(&seen, "main"), 0);
    set(gates[0], "True")?;
    node.wait_ready("gated")?;
    Ok(())
}
