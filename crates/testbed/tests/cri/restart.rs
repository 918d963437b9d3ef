//! Stops and kills of the runtime while containers run.

use std::process::Command;

use anyhow::Result;
use rubelet_cri::RuntimeService;
use rubelet_cri::v1::{self, ContainerState};
use rubelet_testbed::proc;
use serde_json::Value;

use crate::subject::{Sandbox, Subject, TIMEOUT, WAITING, exec, start, stop};

/// Prints a counter, ten times per second.
const COUNTING: &str = "trap 'exit 0' TERM; i=0; while :; do i=$((i+1)); echo $i; sleep 0.1; done";

/// Asserts that the numbers in the log are consecutive.
fn assert_counts(sandbox: &Sandbox<'_>) -> Result<usize> {
    let log = sandbox.log("counting")?;
    for (place, line) in log.iter().enumerate() {
        assert_eq!(line.text, (place + 1).to_string());
    }
    Ok(log.len())
}

#[test]
fn containers_and_their_exits_outlive_the_runtime() -> Result<()> {
    let subject = Subject::alone()?;
    let sandbox = subject.sandbox("outlive")?;
    let counting = sandbox.start(sandbox.script("counting", COUNTING))?;
    let created = sandbox.create(sandbox.script("created", WAITING))?;
    let dying = sandbox.start(sandbox.script(
        "dying",
        "trap 'exit 9' USR1; echo ready; while :; do sleep 0.1; done",
    ))?;
    let before = sandbox.start(sandbox.script("before", "exit 3"))?;
    sandbox.ended(&before)?;
    sandbox.wait_log("dying", "ready")?;
    let ip = sandbox.ip()?;
    let pid = subject.truth.pid(&counting)?;
    let dying_pid = subject.truth.pid(&dying)?;
    for round in 0..2 {
        if round == 0 {
            subject.runtime.kill9()?;
            rubelet_testbed::command::stdout_of(
                Command::new("kill").args(["-USR1", &dying_pid.to_string()]),
            )?;
        } else {
            subject.runtime.halt()?;
        }
        let count = assert_counts(&sandbox)?;
        let went_on = rubelet_testbed::wait::until("the log goes on", TIMEOUT, || {
            Ok((assert_counts(&sandbox)? > count + 3).then_some(()))
        });
        if subject.is_embedded() {
            went_on?;
        }
        subject.resume()?;
        let status = sandbox.status(&counting)?;
        assert_eq!(status.state(), ContainerState::ContainerRunning);
        assert_eq!(subject.truth.pid(&counting)?, pid);
        assert_eq!(
            sandbox.status(&created)?.state(),
            ContainerState::ContainerCreated
        );
        assert_eq!(sandbox.status(&before)?.exit_code, 3);
        let ended = sandbox.ended(&dying)?;
        // Containerd loses the code of an exit that it did not see.
        let code = if subject.is_embedded() { 9 } else { 255 };
        assert_eq!(ended.exit_code, code, "the code of an end that nobody saw");
        assert_eq!(
            sandbox.own_status()?.state(),
            v1::PodSandboxState::SandboxReady
        );
        assert_eq!(sandbox.ip()?, ip);
        assert_eq!(subject.truth.exec(&counting, &["echo", "yes"])?, "yes\n");
        assert_counts(&sandbox)?;
    }
    subject.ask(start(subject.client(), &created))?;
    subject.ask(stop(subject.client(), &counting, 10))?;
    assert_eq!(sandbox.status(&counting)?.exit_code, 0);
    // A new pod doesn't get an address that is in use.
    let other = subject.sandbox("other")?;
    assert_ne!(other.ip()?, ip);
    Ok(())
}

#[test]
fn names_stay_reserved_over_a_restart() -> Result<()> {
    let subject = Subject::alone()?;
    let sandbox = subject.sandbox("names")?;
    sandbox.waiting("main")?;
    subject.runtime.kill9()?;
    subject.resume()?;
    let again = subject.ask(crate::subject::run(subject.client(), &sandbox.config, ""));
    assert!(again.is_err());
    assert!(sandbox.create(sandbox.script("main", "true")).is_err());
    let listed = subject.ask(subject.client().list_pod_sandbox(Default::default()))?;
    assert_eq!(listed.items.len(), 1, "{listed:#?}");
    Ok(())
}

#[test]
fn a_command_is_killed_with_its_call_or_ends_by_itself() -> Result<()> {
    let subject = Subject::alone()?;
    let sandbox = subject.sandbox("commands")?;
    let id = sandbox.waiting("main")?;
    let pid = subject.truth.pid(&id)?;
    subject.ask(async {
        let call = exec(subject.client(), &id, &["sleep", "3"], 60);
        let wait = std::time::Duration::from_millis(500);
        let _ = tokio::time::timeout(wait, call).await;
    });
    subject.runtime.kill9()?;
    subject.resume()?;
    assert_eq!(subject.truth.exec(&id, &["echo", "next"])?, "next\n");
    assert!(proc::Stat::of(pid).is_some());
    Ok(())
}

#[test]
fn a_pod_that_lost_its_network_is_reported_after_a_restart() -> Result<()> {
    let subject = Subject::alone()?;
    if !subject.is_embedded() {
        subject.skip("containerd asks nobody");
        return Ok(());
    }
    let sandbox = subject.sandbox("lost")?;
    let other = subject.sandbox("other")?;
    let warnings = || -> Result<Vec<String>> {
        let request = v1::StatusRequest { verbose: true };
        let answer = subject.ask(subject.client().status(request))?;
        let info: Value = serde_json::from_str(&answer.info["config"])?;
        Ok(serde_json::from_value(info["networkWarnings"].clone())?)
    };
    assert_eq!(warnings()?, [""; 0]);
    subject.runtime.kill9()?;
    // Sorted by index, so the first one is the first pod's.
    let bridge = subject.runtime.scratch().bridge();
    let ip = |words: &[&str]| rubelet_testbed::command::stdout_of(Command::new("ip").args(words));
    let links: Value = serde_json::from_str(&ip(&["-json", "link", "show", "master", &bridge])?)?;
    assert_eq!(links.as_array().map(Vec::len), Some(2), "{links}");
    let first = links[0]["ifname"].as_str().unwrap_or_default();
    ip(&["link", "del", first])?;
    subject.resume()?;
    let told = rubelet_testbed::wait::until("it is told", TIMEOUT, || {
        Ok(Some(warnings()?).filter(|told| !told.is_empty()))
    })?;
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].contains(&sandbox.name()), "{told:?}");
    assert!(!told[0].contains(&other.name()), "{told:?}");
    drop(sandbox);
    assert_eq!(warnings()?, [""; 0]);
    Ok(())
}
