//! `rubelet restart`, and the display of back-offs.

use anyhow::Result;
use rubelet_testbed::Node;
use rubelet_testbed::manifest::shell;
use rubelet_testbed::status::{container, is_ready, restarts, runs, waits_for};
use serde_json::{Value, json};

use crate::notes::{Notes, note, noting, noting_script, sidecar};

fn id(pod: &Value, name: &str) -> Value {
    container(pod, name)["containerID"].clone()
}

#[test]
fn a_container_is_restarted_on_request_in_place() -> Result<()> {
    let node = Node::shared()?;
    let notes = Notes::new(&node, "asked")?;
    let spec = json!({
        "terminationGracePeriodSeconds": 30,
        "initContainers": [shell("prepare", &note("prepare")), sidecar(noting("proxy"))],
        "containers": [noting("main"), noting("other")],
    });
    node.apply(&notes.pod("asked", spec))?;
    let before = node.wait_ready("asked")?;
    let place = crate::place(&node, "asked")?;
    for name in ["main begins", "other begins", "proxy begins"] {
        notes.wait(&node, name)?;
    }
    let said = node.cli(&["restart", "pod/asked-testnode", "-c", "main"])?;
    assert_eq!(said, "pod/asked-testnode: container main was restarted\n");
    let seen = node.wait("asked", "is ready again", |pod| {
        is_ready(pod) && restarts(pod, "main") == 1
    })?;
    assert_eq!(notes.count("main ends"), 1, "it got SIGTERM");
    for untouched in ["other", "proxy", "prepare"] {
        assert_eq!(id(&seen, untouched), id(&before, untouched), "{untouched}");
    }
    assert_eq!(crate::place(&node, "asked")?, place);

    let said = node.cli(&["restart", "asked-testnode"])?;
    assert_eq!(said.lines().count(), 3, "all that stay up: {said}");
    let seen = node.wait("asked", "is ready again", |pod| {
        is_ready(pod) && restarts(pod, "other") == 1
    })?;
    let counts = ["main", "other", "proxy", "prepare"].map(|name| restarts(&seen, name));
    assert_eq!(counts, [2, 1, 1, 0]);
    assert_eq!(
        notes.count("prepare"),
        1,
        "init containers do not run again"
    );
    assert_eq!(crate::place(&node, "asked")?, place);
    let why = node.cli(&["why", "asked-testnode"])?;
    assert!(why.contains("the agent stopped it"), "{why}");

    let refused = node
        .agent()
        .cli(&["restart", "asked-testnode", "-c", "prepare"])?;
    assert_eq!(refused.code, 1);
    assert!(
        refused.stderr.contains("is an init container"),
        "{}",
        refused.stderr
    );
    let refused = node
        .agent()
        .cli(&["restart", "asked-testnode", "-c", "none"])?;
    assert!(
        refused.stderr.contains("it has proxy, main, other"),
        "{}",
        refused.stderr
    );
    Ok(())
}

#[test]
fn a_restart_on_request_resets_the_back_off() -> Result<()> {
    let node = Node::shared()?;
    let notes = Notes::new(&node, "backs-off")?;
    let good = noting_script("main", ":", 0);
    let script = format!("test -e /notes/good || {{ echo no file; exit 3; }}; {good}");
    let spec = json!({ "containers": [shell("main", &script)] });
    node.apply(&notes.pod("backs-off", spec))?;
    node.wait("backs-off", "backs off", |pod| {
        restarts(pod, "main") == 1 && waits_for(pod, "main") == "CrashLoopBackOff"
    })?;
    let table = node.cli(&["get", "pods"])?;
    let row = table.lines().find(|line| line.starts_with("backs-off-"));
    let row = row.unwrap_or_else(|| panic!("{table}"));
    assert!(row.contains("CrashLoopBackOff (try in "), "{row}");
    let seconds = row
        .split("(try in ")
        .nth(1)
        .and_then(|rest| rest.split('s').next());
    let seconds: u64 = seconds.unwrap_or_default().parse()?;
    assert!((1..=10).contains(&seconds), "{row}");

    // Two failures on request. After a failure with a completed back-off the next one would be 20s.
    for count in 2..4 {
        let output = node
            .agent()
            .cli(&["restart", "backs-off-testnode", "-c", "main"])?;
        // It may be reported as running for a moment.
        if output.code != 0 {
            assert!(output.stderr.contains("exit code 3"), "{output:?}");
            assert!(output.stderr.contains("rubelet why"), "{output:?}");
        }
        let seen = node.wait("backs-off", "backs off again", |pod| {
            restarts(pod, "main") >= count && waits_for(pod, "main") == "CrashLoopBackOff"
        })?;
        let message = &container(&seen, "main")["state"]["waiting"]["message"];
        assert!(
            message.as_str().unwrap().starts_with("back-off 10s "),
            "{message}"
        );
    }

    notes.touch("good")?;
    node.cli(&["restart", "pod/backs-off-testnode"])?;
    let seen = node.wait("backs-off", "runs", |pod| runs(pod, "main"))?;
    assert!(restarts(&seen, "main") >= 4);
    Ok(())
}
