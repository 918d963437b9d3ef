//! Standard input and terminals.

use anyhow::Result;

use crate::subject::{Subject, WAITING};

#[test]
fn without_stdin_a_container_reads_end_of_file() -> Result<()> {
    let subject = Subject::shared()?;
    let sandbox = subject.sandbox("closed")?;
    assert_eq!(sandbox.output("main", "cat; echo end")?, "end\n");
    Ok(())
}

#[test]
fn with_stdin_a_container_waits_for_input() -> Result<()> {
    let subject = Subject::shared()?;
    let sandbox = subject.sandbox("open")?;
    let mut config = sandbox.script("main", "echo ready; read line; echo over");
    config.stdin = true;
    let id = sandbox.start(config)?;
    sandbox.wait_log("main", "ready")?;
    // Another container runs meanwhile, from its creation to its exit.
    sandbox.output("other", "true")?;
    let log = sandbox.log("main")?;
    assert_eq!(log.len(), 1, "it still waits: {log:#?}");
    let state = sandbox.status(&id)?.state();
    assert_eq!(state, rubelet_cri::v1::ContainerState::ContainerRunning);
    Ok(())
}

#[test]
fn with_a_terminal_both_outputs_are_one_log() -> Result<()> {
    let subject = Subject::shared()?;
    let sandbox = subject.sandbox("tty")?;
    let script = "[ -t 0 ] && [ -t 1 ] && [ -t 2 ] && tty; echo err >&2; ls -l /dev/console | cut -c1; \
                  echo over";
    let mut config = sandbox.script("main", script);
    config.tty = true;
    config.stdin = true;
    let id = sandbox.start(config)?;
    assert_eq!(sandbox.ended(&id)?.exit_code, 0);
    sandbox.wait_log("main", "over")?;
    let log = sandbox.log("main")?;
    assert!(log.iter().all(|line| line.stream == "stdout"), "{log:#?}");
    let texts: Vec<&str> = log
        .iter()
        .map(|line| line.text.trim_end_matches('\r'))
        .collect();
    assert!(texts[0].starts_with("/dev/"), "{texts:?}");
    assert_eq!(texts[1..], ["err", "c", "over"]);
    Ok(())
}

#[test]
fn a_waiting_container_with_a_terminal_is_stopped() -> Result<()> {
    let subject = Subject::shared()?;
    let sandbox = subject.sandbox("waits")?;
    let mut config = sandbox.script("main", WAITING);
    config.tty = true;
    let id = sandbox.start(config)?;
    sandbox.wait_log("main", "ready")?;
    subject.ask(crate::subject::stop(subject.client(), &id, 20))?;
    assert_eq!(sandbox.status(&id)?.exit_code, 0);
    Ok(())
}
