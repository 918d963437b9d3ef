//! StopContainer: grace periods, stop signals, processes that ignore SIGTERM.

use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use futures_util::future::join_all;
use rubelet_cri::v1;
use rubelet_cri::v1::ContainerState;
use rubelet_testbed::clock;

use crate::subject::{Subject, WAITING, start, stop};

/// Prints a line on SIGTERM, and continues.
const STUBBORN: &str = "trap 'echo asked' TERM; echo ready; while :; do sleep 1000 & wait $!; done";

/// A grace period longer than any delay of a busy machine, and half of it, in seconds.
const GRACE: i64 = 500;
const HALF_GRACE: Duration = Duration::from_secs(250);

#[test]
fn a_container_that_exits_on_sigterm_is_not_killed() -> Result<()> {
    let subject = Subject::shared()?;
    let sandbox = subject.sandbox("polite")?;
    let script = "trap 'echo bye; exit 3' TERM; echo ready; while :; do sleep 1000 & wait $!; done";
    let id = sandbox.start(sandbox.script("main", script))?;
    sandbox.wait_log("main", "ready")?;
    let before = clock::now();
    subject.ask(stop(subject.client(), &id, GRACE))?;
    assert!(before.elapsed() < HALF_GRACE, "not all of the grace");
    let status = sandbox.status(&id)?;
    assert_eq!(status.state(), ContainerState::ContainerExited);
    assert_eq!(status.exit_code, 3);
    sandbox.wait_log("main", "bye")?;
    Ok(())
}

#[test]
fn a_container_is_killed_after_its_grace_period() -> Result<()> {
    let subject = Subject::shared()?;
    let sandbox = subject.sandbox("stubborn")?;
    let id = sandbox.start(sandbox.script("main", STUBBORN))?;
    sandbox.wait_log("main", "ready")?;
    let before = clock::now();
    subject.ask(stop(subject.client(), &id, 1))?;
    assert!(before.elapsed() >= Duration::from_secs(1));
    let status = sandbox.status(&id)?;
    assert_eq!(status.state(), ContainerState::ContainerExited);
    assert_eq!(status.exit_code, 137);
    sandbox.wait_log("main", "asked")?;
    Ok(())
}

#[test]
fn a_grace_period_of_zero_is_a_kill() -> Result<()> {
    let subject = Subject::shared()?;
    let sandbox = subject.sandbox("now")?;
    let id = sandbox.start(sandbox.script("main", STUBBORN))?;
    sandbox.wait_log("main", "ready")?;
    subject.ask(stop(subject.client(), &id, 0))?;
    let status = sandbox.status(&id)?;
    assert_eq!(status.exit_code, 137);
    let log = sandbox.log("main")?;
    assert!(log.iter().all(|line| line.text != "asked"), "{log:#?}");
    Ok(())
}

#[test]
fn a_second_stop_can_shorten_the_grace_period() -> Result<()> {
    let subject = Subject::shared()?;
    let sandbox = subject.sandbox("impatient")?;
    let id = sandbox.start(sandbox.script("main", STUBBORN))?;
    sandbox.wait_log("main", "ready")?;
    let client = subject.client();
    let before = clock::now();
    let (first, second) =
        subject.ask(async { futures_util::join!(stop(client, &id, GRACE), stop(client, &id, 1)) });
    first?;
    second?;
    assert!(before.elapsed() < HALF_GRACE);
    assert_eq!(sandbox.status(&id)?.exit_code, 137);
    Ok(())
}

#[test]
fn stop_is_idempotent_in_any_state() -> Result<()> {
    let subject = Subject::shared()?;
    let sandbox = subject.sandbox("stops")?;
    let client = subject.client();
    let id = sandbox.waiting("main")?;
    let answers = subject.ask(join_all((0..4).map(|_| stop(client, &id, 10))));
    assert!(answers.iter().all(Result::is_ok), "{answers:#?}");
    subject.ask(stop(client, &id, 10))?;
    // Containerd refuses to stop a container that never ran; for a kubelet that cleans up, success
    // is better.
    let created = sandbox.create(sandbox.script("created", WAITING))?;
    let stopped = subject.ask(stop(client, &created, 10));
    if subject.is_embedded() {
        stopped?;
        let status = sandbox.status(&created)?;
        assert_eq!(status.state(), ContainerState::ContainerExited);
        subject.wrong_state(subject.ask(start(client, &created)));
    }
    Ok(())
}

#[test]
fn a_container_can_have_its_own_stop_signal() -> Result<()> {
    let subject = Subject::shared()?;
    let sandbox = subject.sandbox("signal")?;
    let script = "trap 'exit 4' USR1; trap 'exit 5' TERM; echo ready; \
                  while :; do sleep 1000 & wait $!; done";
    let mut config = sandbox.script("main", script);
    config.stop_signal = v1::Signal::Sigusr1.into();
    let id = sandbox.start(config)?;
    sandbox.wait_log("main", "ready")?;
    subject.ask(stop(subject.client(), &id, 30))?;
    let code = sandbox.status(&id)?.exit_code;
    if subject.is_embedded() {
        assert_eq!(code, 4);
    } else {
        // Containerd before 2.2 doesn't know the field.
        assert!([4, 5].contains(&code), "{code}");
    }
    Ok(())
}

#[test]
fn children_of_a_container_end_with_it() -> Result<()> {
    let subject = Subject::shared()?;
    let mut config = subject.sandbox_config("family")?;
    // In the host's PID namespace only the runtime kills the children.
    config.linux.get_or_insert_default().security_context = Some(v1::LinuxSandboxSecurityContext {
        namespace_options: Some(host_pid()),
        ..Default::default()
    });
    let sandbox = subject.sandbox_of(config)?;
    let mut config = sandbox.script(
        "main",
        "trap '' TERM; sh -c 'trap \"\" TERM; echo child $$; sleep 1000; sleep 1000' & \
         echo ready; exec sleep 1000",
    );
    config.linux.get_or_insert_default().security_context =
        Some(v1::LinuxContainerSecurityContext {
            namespace_options: Some(host_pid()),
            ..Default::default()
        });
    let id = sandbox.start(config)?;
    sandbox.wait_log("main", "child")?;
    let log = sandbox.log("main")?;
    let child = log.iter().find_map(|line| line.text.strip_prefix("child "));
    let child = child.unwrap().to_owned();
    assert!(Path::new(&format!("/proc/{child}")).exists());
    subject.ask(stop(subject.client(), &id, 1))?;
    rubelet_testbed::wait::until("the child has ended", crate::subject::TIMEOUT, || {
        Ok((!Path::new(&format!("/proc/{child}")).exists()).then_some(()))
    })
}

fn host_pid() -> v1::NamespaceOption {
    v1::NamespaceOption {
        pid: v1::NamespaceMode::Node.into(),
        ..Default::default()
    }
}
