//! Kills of the agent: results of probes, requests and reasons survive.

use anyhow::{Context, Result};
use rubelet_testbed::Node;
use rubelet_testbed::images::BUSYBOX_IMAGE;
use rubelet_testbed::manifest::{pod, waiting, with};
use rubelet_testbed::node::TIMEOUT;
use rubelet_testbed::status::{condition, container, ended, is_ready, restarts};
use serde_json::{Value, json};

use crate::notes::{Notes, exec_probe, note, noting};
use crate::why;

/// Pods that are ready, each by other means.
fn ready_pods(node: &Node, notes: &Notes) -> Result<Vec<&'static str>> {
    let probe = |who: &str| exec_probe(&format!("{}; test -e /notes/{who}", note(who)));
    for file in ["readiness", "startup", "liveness"] {
        notes.touch(file)?;
    }
    let by_probe = with(
        noting("main"),
        &json!({
            "readinessProbe": with(probe("readiness"), &json!({ "failureThreshold": 1 })),
            "livenessProbe": with(probe("liveness"), &json!({ "failureThreshold": 1 })),
        }),
    );
    let by_startup = with(
        noting("main"),
        &json!({ "startupProbe": with(probe("startup"), &json!({ "failureThreshold": 1 })) }),
    );
    let gated = json!({
        "readinessGates": [{ "conditionType": "example.com/gate" }],
        "containers": [waiting("main")],
    });
    node.apply(&notes.pod("by-probe", json!({ "containers": [by_probe] })))?;
    node.apply(&notes.pod("by-startup", json!({ "containers": [by_startup] })))?;
    node.apply(&pod("by-gate", &gated))?;
    node.wait("by-gate", "is there", |pod| pod.is_object())?;
    let open = json!({ "type": "example.com/gate", "status": "True" });
    let patch = json!({ "status": { "conditions": [open] } });
    let path = "/api/v1/namespaces/default/pods/by-gate-testnode/status";
    let answer = node.agent().patch(path, "strategic-merge-patch", &patch)?;
    assert_eq!(answer.status, 200, "{}", answer.text());
    Ok(vec!["by-probe", "by-startup", "by-gate"])
}

/// Status that must not change while the agent is not running.
fn shown(pod: &Value) -> [Value; 4] {
    let main = container(pod, "main");
    [
        condition(pod, "Ready").clone(),
        main["started"].clone(),
        main["restartCount"].clone(),
        main["containerID"].clone(),
    ]
}

#[test]
fn readiness_and_reasons_outlive_the_agent() -> Result<()> {
    let mut node = Node::start()?;
    let notes = Notes::new(&node, "killed-agent")?;
    let ready = ready_pods(&node, &notes)?;
    let problems = why::problems();
    for problem in &problems {
        node.apply(&problem.pod)?;
    }
    for name in &ready {
        node.wait_ready(name)?;
    }
    let debug = ["debug", "by-gate-testnode", "--image", BUSYBOX_IMAGE];
    node.cli(
        &[
            debug.as_slice(),
            &["-c", "look", "--", "sh", "-c", "exit 5"],
        ]
        .concat(),
    )?;
    node.wait("by-gate", "was looked at", |pod| {
        ended(pod, "look").is_object()
    })?;
    why::expect(&node, &problems)?;
    // A startup probe that has succeeded is not tried again: it would fail from now on.
    notes.forget("startup")?;
    let before: Vec<[Value; 4]> = ready
        .iter()
        .map(|name| Ok(shown(&node.pod(name)?.context("a pod")?)))
        .collect::<Result<_>>()?;

    node.agent_mut().kill9()?;
    let tried = notes.count("readiness");
    node.agent_mut().start()?;
    // From the first response of the API until after some probes, nothing changes.
    node.agent().wait_for("probes go on", TIMEOUT, |_| {
        for (name, before) in ready.iter().zip(&before) {
            if let Some(pod) = node.pod(name)? {
                assert_eq!(shown(&pod), *before, "{name}");
            }
        }
        let asked = node.agent().notifications();
        let is_up = asked.iter().any(|told| told.is_ready());
        Ok((is_up && notes.count("readiness") >= tried + 3).then_some(()))
    })?;
    for name in &ready {
        assert!(node.pod(name)?.is_some_and(|pod| is_ready(&pod)), "{name}");
    }
    let seen = node.pod("by-gate")?.context("a pod")?;
    assert_eq!(
        ended(&seen, "look")["exitCode"],
        5,
        "still there, and not run again"
    );
    assert_eq!(restarts(&seen, "look"), 0);
    why::expect(&node, &problems)?;
    // The results are not only restored: a probe that fails from now on has its effect.
    notes.forget("readiness")?;
    node.wait("by-probe", "is not ready", |pod| !is_ready(pod))?;
    notes.forget("liveness")?;
    node.wait("by-probe", "is restarted", |pod| restarts(pod, "main") > 0)?;
    Ok(())
}
