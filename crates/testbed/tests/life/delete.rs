//! `rubelet delete`: shorter termination of a pod.

use anyhow::Result;
use rubelet_testbed::Node;
use rubelet_testbed::manifest::shell;
use serde_json::json;

use crate::notes::{Notes, note};

#[test]
fn delete_shortens_the_grace_period_of_a_terminating_pod() -> Result<()> {
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
    // A longer grace period is refused, and so is an invalid one.
    for more in [vec![], vec!["--grace-period", "6000"]] {
        let said = node.cli(&[vec!["delete", "stubborn-testnode"], more].concat())?;
        assert!(said.contains("a grace period of 600 s"), "{said}");
    }
    // It does not wait for ten minutes.
    let said = node.cli(&["delete", "stubborn-testnode", "--grace-period=1"])?;
    assert!(said.contains("a grace period of 1 s"), "{said}");
    node.wait_gone("stubborn")?;
    assert_eq!(notes.count("ignored"), 1, "one SIGTERM");
    let gone = node.agent().cli(&["delete", "stubborn-testnode"])?;
    assert_eq!(gone.code, 1);
    Ok(())
}
