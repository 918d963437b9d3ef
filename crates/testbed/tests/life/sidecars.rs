//! Restartable init containers.

use anyhow::Result;
use rubelet_testbed::Node;
use rubelet_testbed::manifest::{shell, with};
use rubelet_testbed::status::{
    condition, container, ended, ended_before, is_ready, restarts, runs, waits_for,
};
use serde_json::json;

use crate::notes::{Notes, exec_probe, note, noting, noting_script, sidecar, until};

#[test]
fn sidecars_start_in_order_and_end_in_reverse_order() -> Result<()> {
    let node = Node::shared()?;
    let notes = Notes::new(&node, "sidecar-order")?;
    let startup = exec_probe(&format!("{}; test -e /notes/go", note("asked")));
    let startup = with(startup, &json!({ "failureThreshold": 300 }));
    let proxy = with(
        sidecar(noting("proxy")),
        &json!({ "startupProbe": startup }),
    );
    let slow = noting_script("main", "sleep 0.5", 0);
    let spec = json!({
        "terminationGracePeriodSeconds": 30,
        "initContainers": [
            shell("one", &note("one")),
            proxy,
            shell("two", &note("two")),
            sidecar(noting("mesh")),
        ],
        "containers": [shell("main", &slow)],
    });
    node.apply(&notes.pod("sidecar-order", spec))?;
    notes.wait_count(&node, "asked", 2)?;
    let seen = node.wait("sidecar-order", "runs its first sidecar", |pod| {
        runs(pod, "proxy")
    })?;
    assert_eq!(seen["status"]["phase"], "Pending");
    assert_eq!(container(&seen, "proxy")["started"], false);
    assert_eq!(ended(&seen, "one")["reason"], "Completed");
    for later in ["two", "mesh", "main"] {
        assert_eq!(waits_for(&seen, later), "PodInitializing", "{later}");
    }
    let initialized = condition(&seen, "Initialized");
    assert_eq!(
        initialized["message"],
        "containers with incomplete status: [proxy two mesh]"
    );
    assert_eq!(
        node.containers("sidecar-order")?.len(),
        2,
        "nothing is made before the startup probe has succeeded"
    );

    notes.touch("go")?;
    let seen = node.wait_ready("sidecar-order")?;
    assert_eq!(seen["status"]["phase"], "Running");
    for name in ["proxy", "mesh", "main"] {
        let status = container(&seen, name);
        assert_eq!(status["started"], true, "{name}");
        assert_eq!(status["ready"], true, "{name}");
    }
    assert_eq!(condition(&seen, "Initialized")["status"], "True");
    let table = node.cli(&["get", "pod", "sidecar-order-testnode", "--no-headers"])?;
    let cells: Vec<&str> = table.split_whitespace().collect();
    assert_eq!(cells[1..3], ["3/3", "Running"], "sidecars are counted");
    // Its trap is set before it records its start.
    notes.wait(&node, "main begins")?;

    node.remove("sidecar-order")?;
    node.wait_gone("sidecar-order")?;
    let mut lines = notes.lines();
    lines.retain(|line| line != "asked");
    assert_eq!(
        lines,
        [
            "one",
            "proxy begins",
            "two",
            "mesh begins",
            "main begins",
            "main ends",
            "mesh ends",
            "proxy ends",
        ]
    );
    Ok(())
}

#[test]
fn an_exited_sidecar_is_restarted_under_any_policy() -> Result<()> {
    let node = Node::shared()?;
    let policies = [("Never", 3), ("OnFailure", 0), ("Always", 3)];
    let name_of = |policy: &str| format!("sidecar-dies-{}", policy.to_lowercase());
    for (policy, code) in policies {
        let name = name_of(policy);
        let notes = Notes::new(&node, &name)?;
        let dies = format!("{}; rm /notes/die; exit {code}", until("die"));
        let spec = json!({
            "restartPolicy": policy,
            "initContainers": [sidecar(shell("proxy", &dies)), shell("once", "true")],
            "containers": [noting("main")],
        });
        node.apply(&notes.pod(&name, spec))?;
    }
    for (policy, code) in policies {
        let name = name_of(policy);
        node.wait_ready(&name)?;
        let before = (crate::place(&node, &name)?, node.running(&name, "main")?.id);
        Notes::new(&node, &name)?.touch("die")?;
        let seen = node.wait(&name, "has its sidecar again", |pod| {
            restarts(pod, "proxy") == 1 && runs(pod, "proxy")
        })?;
        assert_eq!(ended_before(&seen, "proxy")["exitCode"], code, "{policy}");
        assert_eq!(seen["status"]["phase"], "Running", "{policy}");
        let seen = node.wait_ready(&name)?;
        for untouched in ["main", "once"] {
            assert_eq!(restarts(&seen, untouched), 0, "{policy}: {untouched}");
        }
        let now = (crate::place(&node, &name)?, node.running(&name, "main")?.id);
        assert_eq!(now, before, "{policy}: all else runs on");
    }
    Ok(())
}

#[test]
fn sidecars_of_a_finished_pod_are_ended() -> Result<()> {
    let node = Node::shared()?;
    let rows = [
        ("finished-never", "Never", 0, "Succeeded"),
        ("finished-onfailure", "OnFailure", 0, "Succeeded"),
        ("failed-never", "Never", 4, "Failed"),
    ];
    for (name, policy, code, _) in rows {
        let notes = Notes::new(&node, name)?;
        let main = format!("{}; {}; exit {code}", until("done"), note("main ends"));
        let spec = json!({
            "restartPolicy": policy,
            "terminationGracePeriodSeconds": 30,
            "initContainers": [
                sidecar(noting("first")),
                sidecar(shell("second", &noting_script("second", ":", 7))),
            ],
            "containers": [shell("main", &main)],
        });
        node.apply(&notes.pod(name, spec))?;
    }
    for (name, _, code, phase) in rows {
        let notes = Notes::new(&node, name)?;
        node.wait(name, "is ready", is_ready)?;
        notes.wait(&node, "first begins")?;
        notes.wait(&node, "second begins")?;
        notes.touch("done")?;
        let seen = node.wait_end(name)?;
        assert_eq!(seen["status"]["phase"], phase, "{name}");
        assert_eq!(ended(&seen, "main")["exitCode"], code, "{name}");
        for (sidecar, code) in [("first", 0), ("second", 7)] {
            assert_eq!(ended(&seen, sidecar)["exitCode"], code, "{name}: {sidecar}");
            assert_eq!(restarts(&seen, sidecar), 0, "{name}: {sidecar}");
        }
        let ends = notes.lines().split_off(2);
        assert_eq!(ends, ["main ends", "second ends", "first ends"], "{name}");
        assert!(
            node.containers(name)?.iter().all(|one| !one.is_running()),
            "{name}: the runtime runs nothing of it"
        );
    }
    Ok(())
}
