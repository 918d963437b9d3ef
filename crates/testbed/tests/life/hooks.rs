//! preStop hooks, which count toward the grace period.

use std::time::Duration;

use anyhow::Result;
use rubelet_testbed::manifest::{shell, with};
use rubelet_testbed::{Node, clock};
use serde_json::{Value, json};

use crate::notes::{Notes, note, noting, noting_script};

fn hooked(container: Value, hook: &Value) -> Value {
    with(container, &json!({ "lifecycle": { "preStop": hook } }))
}

fn exec(script: &str) -> Value {
    json!({ "exec": { "command": ["sh", "-c", script] } })
}

/// Removes a pod after all of its containers have started; returns the duration of its termination.
fn end(node: &Node, name: &str, notes: &Notes, spec: Value) -> Result<Duration> {
    let count = spec["containers"].as_array().map_or(0, Vec::len);
    node.apply(&notes.pod(name, spec))?;
    node.wait_ready(name)?;
    super::wait(node, "all containers have begun", || {
        let begun = notes.lines();
        Ok(begun
            .iter()
            .filter(|line| line.ends_with(" begins"))
            .count()
            == count)
    })?;
    let start = clock::now();
    node.remove(name)?;
    node.wait_gone(name)?;
    Ok(start.elapsed())
}

#[test]
fn pre_stop_hooks_run_before_sigterm() -> Result<()> {
    let node = Node::shared()?;
    let notes = Notes::new(&node, "pre-stop")?;
    let answer = format!(
        "{}; printf \"HTTP/1.1 200 OK\\r\\nContent-Length: 0\\r\\n\\r\\n\"",
        note("asked hook")
    );
    let script = noting_script("asked", ":", 0);
    let server =
        format!("echo '{answer}' > /tmp/answer; nc -ll -p 8080 -e sh /tmp/answer & {script}");
    let asked = with(
        shell("asked", &server),
        &json!({
            "ports": [{ "name": "end", "containerPort": 8080 }],
            // The server runs when the pod is ready.
            "startupProbe": { "tcpSocket": { "port": "end" }, "periodSeconds": 1 },
        }),
    );
    let spec = json!({
        "terminationGracePeriodSeconds": 600,
        "containers": [
            hooked(noting("run"), &exec(&note("run hook"))),
            hooked(asked, &json!({ "httpGet": { "port": "end", "path": "/bye" } })),
            hooked(noting("slept"), &json!({ "sleep": { "seconds": 1 } })),
        ],
    });
    // A connection of the startup probe causes a response too.
    let took = end(&node, "pre-stop", &notes, spec)?;
    let lines = notes.lines();
    let last = |what: &str| {
        let found = lines.iter().rposition(|line| line == what);
        found.unwrap_or_else(|| panic!("{what} is not in {lines:#?}"))
    };
    assert!(last("run hook") < last("run ends"), "{lines:#?}");
    assert!(last("asked hook") < last("asked ends"), "{lines:#?}");
    assert!(last("asked hook") > last("run begins"), "{lines:#?}");
    assert_eq!(last("slept ends"), lines.len() - 1, "{lines:#?}");
    assert!(took.as_secs() >= 1, "it took {took:?}");
    Ok(())
}

#[test]
fn a_failed_pre_stop_hook_does_not_delay_sigterm() -> Result<()> {
    let node = Node::shared()?;
    let notes = Notes::new(&node, "pre-stop-fails")?;
    let spec = json!({
        "terminationGracePeriodSeconds": 600,
        "containers": [hooked(noting("main"), &exec("exit 1"))],
    });
    // SIGTERM is sent immediately, without waiting for the grace period.
    end(&node, "pre-stop-fails", &notes, spec)?;
    assert_eq!(notes.lines(), ["main begins", "main ends"]);
    let event = node.wait_event("pre-stop-fails", "FailedPreStopHook", "")?;
    assert_eq!(event, "PreStopHook failed");
    Ok(())
}

#[test]
fn a_pre_stop_hook_beyond_the_grace_period_is_ended() -> Result<()> {
    let node = Node::shared()?;
    let notes = Notes::new(&node, "pre-stop-long")?;
    // SIGTERM is sent although the hook is still running, and the hook observes it.
    let hook = format!(
        "{}; until grep -q termed /notes/notes; do sleep 0.05; done; {}; exec sleep 600",
        note("hook begins"),
        note("hook goes on")
    );
    let main = format!(
        "trap '{}' TERM; {}; while :; do sleep 3600 & wait $!; done",
        note("main is termed"),
        note("main begins")
    );
    let spec = json!({
        "terminationGracePeriodSeconds": 2,
        "containers": [hooked(shell("main", &main), &exec(&hook))],
    });
    let took = end(&node, "pre-stop-long", &notes, spec)?;
    assert!(took.as_secs() >= 4, "it took {took:?}");
    assert_eq!(
        notes.lines(),
        [
            "main begins",
            "hook begins",
            "main is termed",
            "hook goes on"
        ]
    );
    // The exit of the container ended it.
    node.wait_event("pre-stop-long", "FailedPreStopHook", "PreStopHook failed")?;
    Ok(())
}
