//! Effects of probes.

use anyhow::Result;
use rubelet_testbed::Node;
use rubelet_testbed::manifest::{shell, waiting, with};
use rubelet_testbed::status::{condition, container, ended_before, is_ready, restarts, runs};
use serde_json::json;

use crate::notes::{Notes, exec_probe, note, noting};

#[test]
fn a_failed_liveness_probe_restarts_the_container() -> Result<()> {
    let node = Node::shared()?;
    let notes = Notes::new(&node, "liveness")?;
    let liveness = |name: &str| {
        let gone = "echo the file is gone; exit 1";
        let probe = exec_probe(&format!("test -e /notes/{name} || {{ {gone}; }}"));
        with(probe, &json!({ "failureThreshold": 2 }))
    };
    let deaf = shell("deaf", "trap '' TERM; while :; do sleep 1; done");
    let of_deaf = with(
        liveness("deaf"),
        &json!({ "terminationGracePeriodSeconds": 1 }),
    );
    let spec = json!({
        "terminationGracePeriodSeconds": 600,
        "containers": [
            with(noting("main"), &json!({ "livenessProbe": liveness("main") })),
            with(deaf, &json!({ "livenessProbe": of_deaf })),
            waiting("other"),
        ],
    });
    notes.touch("main")?;
    notes.touch("deaf")?;
    node.apply(&notes.pod("liveness", spec))?;
    node.wait_ready("liveness")?;
    notes.wait(&node, "main begins")?;
    let place = crate::place(&node, "liveness")?;
    notes.forget("main")?;
    notes.forget("deaf")?;
    for name in ["main", "deaf"] {
        let killing = format!("Container {name} failed liveness probe, will be restarted");
        node.wait_event("liveness", "Killing", &killing)?;
        notes.touch(name)?;
    }
    let seen = node.wait("liveness", "is ready again", |pod| {
        is_ready(pod) && ["main", "deaf"].iter().all(|name| restarts(pod, name) == 1)
    })?;
    assert_eq!(ended_before(&seen, "main")["exitCode"], 0, "SIGTERM");
    assert_eq!(ended_before(&seen, "deaf")["exitCode"], 137, "SIGKILL");
    assert_eq!(restarts(&seen, "other"), 0);
    assert_eq!(crate::place(&node, "liveness")?, place, "the sandbox stays");
    let event = node.wait_event("liveness", "Unhealthy", "Liveness probe failed")?;
    assert_eq!(event, "Liveness probe failed: the file is gone\n");
    crate::wait(&node, "the probe's words and its success are told", || {
        let why = node.cli(&["why", "pod/liveness-testnode"])?;
        Ok(why.contains("the file is gone") && why.contains("liveness probe passes"))
    })?;
    // So that its termination does not take 600 s.
    node.remove("liveness")?;
    node.wait("liveness", "ends", |pod| {
        pod["metadata"]["deletionTimestamp"].is_string()
    })?;
    node.cli(&["delete", "pod/liveness-testnode", "--now"])?;
    node.wait_gone("liveness")
}

#[test]
fn a_startup_probe_precedes_the_others_and_can_fail() -> Result<()> {
    let node = Node::shared()?;
    let notes = Notes::new(&node, "startup")?;
    let up = |who: &str| exec_probe(&format!("{}; test -e /notes/up", note(who)));
    let spec = json!({ "containers": [with(noting("main"), &json!({
        "startupProbe": with(up("startup"), &json!({ "failureThreshold": 300 })),
        "livenessProbe": with(up("liveness"), &json!({ "failureThreshold": 1 })),
        "readinessProbe": up("readiness"),
    }))]});
    node.apply(&notes.pod("startup", spec))?;
    let of_bad = Notes::new(&node, "startup-fails")?;
    let failing = with(exec_probe("exit 1"), &json!({ "failureThreshold": 2 }));
    let spec = json!({ "containers": [
        with(noting("main"), &json!({ "startupProbe": failing })),
    ]});
    node.apply(&of_bad.pod("startup-fails", spec))?;

    notes.wait_count(&node, "startup", 3)?;
    let seen = node.wait("startup", "runs", |pod| runs(pod, "main"))?;
    for other in ["liveness", "readiness"] {
        assert_eq!(notes.count(other), 0, "{other} waits");
    }
    let status = container(&seen, "main");
    assert_eq!(
        (&status["started"], &status["ready"]),
        (&json!(false), &json!(false))
    );
    notes.touch("up")?;
    let seen = node.wait_ready("startup")?;
    assert_eq!(container(&seen, "main")["started"], true);
    assert_eq!(restarts(&seen, "main"), 0);
    let count = notes.count("startup");
    notes.wait_count(&node, "liveness", 2)?;
    assert_eq!(notes.count("startup"), count, "it is not tried any more");

    node.wait_event(
        "startup-fails",
        "Killing",
        "Container main failed startup probe, will be restarted",
    )?;
    node.wait("startup-fails", "is restarted", |pod| {
        restarts(pod, "main") >= 1
    })?;
    node.wait_event("startup-fails", "Unhealthy", "Startup probe failed: ")?;
    Ok(())
}

#[test]
fn probes_of_a_sidecar_work_as_those_of_containers() -> Result<()> {
    let node = Node::shared()?;
    let notes = Notes::new(&node, "sidecar-probes")?;
    let once = json!({ "failureThreshold": 1 });
    // It fails once only: its file is there again before the new container is probed.
    let alive = exec_probe("test -e /notes/alive || ! touch /notes/alive");
    let ready = exec_probe("test -e /notes/ready");
    let proxy = with(
        crate::notes::sidecar(noting("proxy")),
        &json!({ "livenessProbe": with(alive, &once), "readinessProbe": with(ready, &once) }),
    );
    let spec = json!({ "initContainers": [proxy], "containers": [noting("main")] });
    notes.touch("alive")?;
    node.apply(&notes.pod("sidecar-probes", spec))?;
    let seen = node.wait("sidecar-probes", "waits for its sidecar", |pod| {
        condition(pod, "Ready")["message"] == "containers with unready status: [proxy]"
    })?;
    assert_eq!(container(&seen, "main")["ready"], true);
    notes.touch("ready")?;
    let seen = node.wait_ready("sidecar-probes")?;
    assert_eq!(restarts(&seen, "proxy"), 0);
    notes.forget("alive")?;
    let seen = node.wait("sidecar-probes", "has restarted it", |pod| {
        is_ready(pod) && restarts(pod, "proxy") == 1
    })?;
    assert_eq!(restarts(&seen, "main"), 0);
    Ok(())
}
