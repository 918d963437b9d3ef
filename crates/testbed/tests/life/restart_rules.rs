//! Restart policies and rules of single containers.

use anyhow::Result;
use rubelet_testbed::Node;
use rubelet_testbed::manifest::{shell, waiting, with};
use rubelet_testbed::status::{ended, ended_before, restarts, runs};
use serde_json::{Value, json};

use crate::notes::{Notes, note};

/// A container with its own restart policy that exits with `first`, and with `then` after a
/// restart.
fn twice(name: &str, first: i32, then: i32, policy: &str) -> Value {
    let script = format!(
        "{}; test -e /notes/{name} && exit {then}; touch /notes/{name}; exit {first}",
        note(name)
    );
    with(shell(name, &script), &json!({ "restartPolicy": policy }))
}

fn ruled(container: Value, operator: &str, codes: &[i32]) -> Value {
    let rule = json!({
        "action": "Restart",
        "exitCodes": { "operator": operator, "values": codes },
    });
    with(container, &json!({ "restartPolicyRules": [rule] }))
}

#[test]
fn container_restart_policies_override_the_pods() -> Result<()> {
    let node = Node::shared()?;
    let notes = Notes::new(&node, "own-policies")?;
    let spec = json!({
        "restartPolicy": "Never",
        "initContainers": [twice("prepare", 9, 0, "OnFailure")],
        "containers": [
            shell("plain", "exit 0"),
            twice("never", 0, 0, "Never"),
            twice("onfailure", 5, 0, "OnFailure"),
            ruled(twice("matched", 42, 0, "Never"), "In", &[41, 42]),
            ruled(twice("unmatched", 0, 0, "Never"), "NotIn", &[0]),
        ],
    });
    node.apply(&notes.pod("own-policies", spec))?;
    let notes_of_always = Notes::new(&node, "never-but")?;
    let spec = json!({
        "restartPolicy": "Always",
        "containers": [
            twice("never", 6, 0, "Never"),
            ruled(twice("unmatched", 7, 0, "Never"), "In", &[8]),
            waiting("main"),
        ],
    });
    node.apply(&notes_of_always.pod("never-but", spec))?;

    let seen = node.wait_end("own-policies")?;
    assert_eq!(seen["status"]["phase"], "Succeeded");
    for (name, count) in [
        ("prepare", 1),
        ("plain", 0),
        ("never", 0),
        ("onfailure", 1),
        ("matched", 1),
        ("unmatched", 0),
    ] {
        assert_eq!(restarts(&seen, name), count, "{name}");
        assert_eq!(ended(&seen, name)["exitCode"], 0, "{name}");
        if name != "plain" {
            let runs = usize::try_from(count)? + 1;
            assert_eq!(notes.count(name), runs, "{name} ran so often");
        }
    }
    for (name, code) in [("prepare", 9), ("onfailure", 5), ("matched", 42)] {
        assert_eq!(ended_before(&seen, name)["exitCode"], code, "{name}");
    }

    let seen = node.wait("never-but", "has two ended containers", |pod| {
        runs(pod, "main") && ended(pod, "never").is_object() && ended(pod, "unmatched").is_object()
    })?;
    assert_eq!(
        seen["status"]["phase"], "Running",
        "one container goes on, and may end in any way"
    );
    for (name, code) in [("never", 6), ("unmatched", 7)] {
        assert_eq!(ended(&seen, name)["exitCode"], code, "{name}");
        assert_eq!(notes_of_always.count(name), 1, "{name} ran once");
    }
    Ok(())
}
