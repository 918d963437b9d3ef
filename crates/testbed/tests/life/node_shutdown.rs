//! Shutdowns of the machine, which a stand-in for logind announces.

use anyhow::Result;
use rubelet_host::logind::peer::{LogindPeer, SignalSender};
use rubelet_testbed::Node;
use rubelet_testbed::agent::AgentBuilder;
use rubelet_testbed::manifest::shell;
use serde_json::json;

use crate::notes::{Notes, note, noting_script};

const VARIABLE: &str = "DBUS_SYSTEM_BUS_ADDRESS";

/// A node whose shutdown waits for pods below priority 1000 first.
fn start() -> Result<(Node, LogindPeer)> {
    let mut started = None;
    let node = Node::start_with(|builder| {
        let socket = builder.scratch().dir().join("bus");
        started = Some(LogindPeer::start(&socket, 1000));
        let groups = json!([
            { "priority": 1000, "shutdownGracePeriodSeconds": 300 },
            { "priority": 0, "shutdownGracePeriodSeconds": 300 },
        ]);
        on_bus(builder, &format!("unix:path={},guid=00", socket.display()))
            .config("shutdownGracePeriodByPodPriority", groups)
    })?;
    let logind = started.expect("the node was configured")?;
    Ok((node, logind))
}

fn on_bus(builder: AgentBuilder, address: &str) -> AgentBuilder {
    builder.env(VARIABLE, address)
}

fn wait_locks(node: &Node, logind: &LogindPeer, count: usize) -> Result<()> {
    let what = format!("{count} locks delay a shutdown");
    super::wait(node, &what, || Ok(logind.locks() == count))
}

#[test]
fn a_shutdown_waits_for_pods_by_priority_and_manifests_run_again_after_it() -> Result<()> {
    let (mut node, logind) = start()?;
    wait_locks(&node, &logind, 1)?;
    let notes = Notes::new(&node, "shutdown")?;
    let told = note("dns told");
    let pods = [("web", "sleep 2", 0), ("dns", told.as_str(), 5000)];
    for (name, at_term, priority) in pods {
        let main = shell("main", &noting_script(name, at_term, 0));
        let spec = json!({
            "containers": [main],
            "priority": priority,
            "terminationGracePeriodSeconds": 300,
        });
        node.apply(&notes.pod(name, spec))?;
        notes.wait(&node, &format!("{name} begins"))?;
    }
    // Somebody else on the machine can't end its pods.
    logind.announce(true, SignalSender::Other);
    logind.announce(true, SignalSender::Logind);
    wait_locks(&node, &logind, 0)?;
    assert_eq!(
        notes.lines()[2..],
        ["web ends", "dns told", "dns ends"],
        "dns is there as long as web needs it"
    );
    for (name, ..) in pods {
        let status = node.wait_end(name)?["status"].take();
        assert_eq!(status["phase"], "Failed", "{status}");
        assert_eq!(status["reason"], "Terminated");
        assert_eq!(
            status["message"],
            "Pod was terminated in response to imminent node shutdown."
        );
    }
    let late = shell("main", "sleep 1000");
    node.apply(&notes.pod("late", json!({ "containers": [late] })))?;
    let status = node.wait_end("late")?["status"].take();
    assert_eq!(status["reason"], "NodeShutdown", "{status}");

    logind.restart();
    node.lose_power()?;

    for (name, ..) in pods {
        let status = node.wait_ready(name)?["status"].take();
        assert_eq!(status["reason"], serde_json::Value::Null, "{status}");
        // A container is ready before its script has written anything.
        let begins = format!("{name} begins");
        notes.wait_count(&node, &begins, 2)?;
        assert_eq!(notes.count(&begins), 2);
    }
    node.wait_ready("late")?;
    wait_locks(&node, &logind, 1)
}

#[test]
fn a_cancelled_shutdown_restores_the_node() -> Result<()> {
    let (node, logind) = start()?;
    wait_locks(&node, &logind, 1)?;
    let notes = Notes::new(&node, "cancelled")?;
    let main = shell("main", &noting_script("web", ":", 0));
    node.apply(&notes.pod("web", json!({ "containers": [main] })))?;
    notes.wait(&node, "web begins")?;
    logind.announce(true, SignalSender::Logind);
    wait_locks(&node, &logind, 0)?;
    logind.announce(false, SignalSender::Logind);
    wait_locks(&node, &logind, 1)?;
    notes.wait_count(&node, "web begins", 2)?;
    node.wait_ready("web")?;
    // The lock is taken again.
    logind.restart();
    super::wait(&node, "logind is asked again", || {
        let calls = logind.calls();
        Ok(calls.iter().filter(|call| *call == "Inhibit").count() == 3)
    })?;
    wait_locks(&node, &logind, 1)
}

#[test]
fn without_logind_the_start_says_that_a_shutdown_does_not_wait() -> Result<()> {
    let node = Node::start_with(|builder| {
        let socket = builder.scratch().dir().join("missing");
        on_bus(builder, &format!("unix:path={}", socket.display()))
            .config("shutdownGracePeriod", "30s")
    })?;
    let expected = [
        "shutdownGracePeriod has no effect as long as logind can't be used",
        "cannot reach D-Bus at ",
    ];
    super::wait(&node, "the log says so", || {
        let log = std::fs::read_to_string(node.agent().log_path())?;
        let mut lines = log.lines();
        Ok(lines.any(|line| expected.iter().all(|text| line.contains(text))))
    })
}
