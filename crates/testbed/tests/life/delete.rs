//! `rubelet delete`: the end of a pod, sooner.

use anyhow::Result;
use rubelet_testbed::Node;
use rubelet_testbed::manifest::shell;
use serde_json::json;

use crate::notes::{Notes, note};

#[test]
fn a_pod_that_ignores_sigterm_can_be_ended_sooner_but_not_against_its_manifest() -> Result<()> {
    let node = Node::shared()?;
    let notes = Notes::new(&node, "stubborn")?;
    let script = format!(
        "trap '{}' TERM; {}; while :; do sleep 0.1; done",
        note("ignored"),
        note("main begins")
    );
    let spec = json!({
        "terminationGracePeriodSeconds": 600,
        "containers": [shell("main", &script)],
    });
    node.apply(&notes.pod("stubborn", spec))?;
    node.wait_ready("stubborn")?;
    notes.wait(&node, "main begins")?;
    let refused = node.agent().cli(&["delete", "pod/stubborn-testnode"])?;
    assert_eq!(refused.code, 1);
    let file = node.agent().manifest_dir().join("stubborn.json");
    let words = format!("is kept by manifest {}", file.display());
    assert!(refused.stderr.contains(&words), "{}", refused.stderr);

    node.remove("stubborn")?;
    notes.wait(&node, "ignored")?;
    let why = node.cli(&["why", "stubborn-testnode"])?;
    assert!(why.contains("gets SIGKILL in "), "{why}");
    // Longer is no use, and neither is no number.
    for more in [vec![], vec!["--grace-period", "6000"]] {
        let said = node.cli(&[vec!["delete", "stubborn-testnode"], more].concat())?;
        assert!(said.contains("a grace period of 600 s"), "{said}");
    }
    // Nobody waits for ten minutes here.
    let said = node.cli(&["delete", "stubborn-testnode", "--grace-period=1"])?;
    assert!(said.contains("a grace period of 1 s"), "{said}");
    node.wait_gone("stubborn")?;
    assert_eq!(notes.count("ignored"), 1, "one SIGTERM");
    let gone = node.agent().cli(&["delete", "stubborn-testnode"])?;
    assert_eq!(gone.code, 1);
    Ok(())
}
