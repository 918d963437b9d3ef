//! Restarts of all containers by a rule, in the same sandbox.

use anyhow::Result;
use rubelet_testbed::Node;
use rubelet_testbed::manifest::{shell, with};
use rubelet_testbed::status::{container, ended_before, is_ready, restarts};
use serde_json::json;

use crate::notes::{Notes, note, noting, sidecar, until};

#[test]
fn an_exit_code_may_restart_all_containers_in_the_same_sandbox() -> Result<()> {
    let node = Node::shared()?;
    let notes = Notes::new(&node, "restart-all")?;
    let script = format!(
        "{}; {}; rm /notes/again; exit 88",
        note("main begins"),
        until("again")
    );
    let rule = json!({
        "action": "RestartAllContainers",
        "exitCodes": { "operator": "In", "values": [88] },
    });
    let main = with(
        shell("main", &script),
        &json!({ "restartPolicy": "Never", "restartPolicyRules": [rule] }),
    );
    let spec = json!({
        "restartPolicy": "Never",
        "initContainers": [shell("prepare", &note("prepare")), sidecar(noting("proxy"))],
        "containers": [main, noting("other")],
    });
    node.apply(&notes.pod("restart-all", spec))?;
    let names = ["prepare", "proxy", "main", "other"];
    let seen = node.wait_ready("restart-all")?;
    notes.wait(&node, "other begins")?;
    let place = crate::place(&node, "restart-all")?;
    let ids = names.map(|name| container(&seen, name)["containerID"].clone());

    notes.touch("again")?;
    let seen = node.wait("restart-all", "runs again", |pod| {
        is_ready(pod) && names.iter().all(|name| restarts(pod, name) == 1)
    })?;
    assert_eq!(
        crate::place(&node, "restart-all")?,
        place,
        "sandbox and address stay"
    );
    for (name, old) in names.iter().zip(ids) {
        assert_ne!(container(&seen, name)["containerID"], old, "{name} is new");
    }
    assert_eq!(ended_before(&seen, "main")["exitCode"], 88);
    assert!(ended_before(&seen, "other").is_object());
    let mut made: Vec<(String, u32)> = node
        .containers("restart-all")?
        .into_iter()
        .map(|one| (one.name, one.attempt))
        .collect();
    made.sort();
    let wanted = ["main", "other", "prepare", "proxy"].map(|name| (name.to_owned(), 1));
    assert_eq!(
        made, wanted,
        "the counts go on, and the old records are gone"
    );

    notes.wait_count(&node, "other begins", 2)?;
    let lines = notes.lines();
    let from = lines.iter().rposition(|line| line == "prepare").unwrap();
    assert_eq!(lines[from..][..2], ["prepare", "proxy begins"], "in order");
    for twice in ["prepare", "proxy begins", "main begins", "other begins"] {
        assert_eq!(notes.count(twice), 2, "{twice}: {lines:#?}");
    }
    Ok(())
}
