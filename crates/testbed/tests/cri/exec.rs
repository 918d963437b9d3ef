//! ExecSync.

use anyhow::Result;
use futures_util::future::join_all;
use rubelet_cri::{CriErrorKind, v1};
use rubelet_testbed::wait;

use crate::subject::{Subject, TIMEOUT, WAITING, exec, not_found, refused, stop};

#[test]
fn both_outputs_and_the_exit_code_are_returned() -> Result<()> {
    let subject = Subject::shared()?;
    let sandbox = subject.sandbox("exec")?;
    let id = sandbox.waiting("main")?;
    let command = ["sh", "-c", "echo out; echo err >&2; exit 5"];
    let done = subject.ask(exec(subject.client(), &id, &command, 0))?;
    assert_eq!(done.exit_code, 5);
    assert_eq!(done.stdout, b"out\n");
    assert_eq!(done.stderr, b"err\n");
    let killed = ["sh", "-c", "kill -KILL $$"];
    let done = subject.ask(exec(subject.client(), &id, &killed, 10))?;
    assert_eq!(done.exit_code, 137);
    Ok(())
}

#[test]
fn a_command_sees_what_the_container_sees() -> Result<()> {
    let subject = Subject::shared()?;
    let sandbox = subject.sandbox("place")?;
    let mut config = sandbox.script("main", &format!("echo here > /tmp/mark; {WAITING}"));
    config.working_dir = "/tmp".into();
    config.envs = vec![v1::KeyValue {
        key: "GREETING".into(),
        value: "hello there".into(),
    }];
    config.linux.get_or_insert_default().security_context =
        Some(v1::LinuxContainerSecurityContext {
            run_as_user: Some(v1::Int64Value { value: 1000 }),
            run_as_group: Some(v1::Int64Value { value: 2000 }),
            ..Default::default()
        });
    let id = sandbox.start(config)?;
    wait::until("the container has made its mark", TIMEOUT, || {
        let done = subject.ask(exec(subject.client(), &id, &["cat", "mark"], 10))?;
        Ok((done.stdout == b"here\n").then_some(()))
    })?;
    let script = "echo $GREETING; pwd; id -u; id -g; cat /proc/1/comm; hostname; \
                  ls -d /proc/self/fd/[3-9]* 2>/dev/null | wc -l";
    let done = subject.ask(exec(subject.client(), &id, &["sh", "-c", script], 10))?;
    let text = String::from_utf8_lossy(&done.stdout).into_owned();
    let lines: Vec<&str> = text.lines().collect();
    let hostname = sandbox.config.hostname.as_str();
    assert_eq!(
        lines[..6],
        ["hello there", "/tmp", "1000", "2000", "sh", hostname]
    );
    Ok(())
}

#[test]
fn concurrent_commands_do_not_mix() -> Result<()> {
    let subject = Subject::shared()?;
    let sandbox = subject.sandbox("crowd")?;
    let id = sandbox.waiting("main")?;
    let client = subject.client();
    let id = &id;
    let answers = subject.ask(join_all((0..10).map(|number| async move {
        let script = format!("echo {number}; sleep 0.1; echo {number}");
        exec(client, id, &["sh", "-c", &script], 30).await
    })));
    for (number, answer) in answers.into_iter().enumerate() {
        assert_eq!(answer?.stdout, format!("{number}\n{number}\n").into_bytes());
    }
    Ok(())
}

#[test]
fn a_command_that_exceeds_its_timeout_is_killed() -> Result<()> {
    let subject = Subject::shared()?;
    let sandbox = subject.sandbox("slow")?;
    let id = sandbox.waiting("main")?;
    let command = [
        "sh",
        "-c",
        "trap '' TERM; echo begun; sleep 4321; sleep 4321",
    ];
    // Otherwise it would take more than an hour.
    let error = refused(subject.ask(exec(subject.client(), &id, &command, 1)));
    assert!(
        matches!(error.kind, CriErrorKind::DeadlineExceeded(_)),
        "{error}"
    );
    wait::until("nothing of the command runs", TIMEOUT, || {
        let look = "for p in /proc/[0-9]*/cmdline; do tr '\\0' ' ' < $p; echo; done";
        let done = subject.ask(exec(subject.client(), &id, &["sh", "-c", look], 10))?;
        let text = String::from_utf8_lossy(&done.stdout).into_owned();
        let shell = text
            .lines()
            .any(|line| line.starts_with("sh -c trap '' TERM; echo begun"));
        Ok((!shell).then_some(()))
    })?;
    Ok(())
}

#[test]
fn a_command_ends_with_its_first_process() -> Result<()> {
    let subject = Subject::shared()?;
    let sandbox = subject.sandbox("daemon")?;
    let id = sandbox.waiting("main")?;
    // A grandchild continues and holds the output open, like daemons that a hook starts. Containerd
    // waits for the end of the output, however long.
    let seconds = if subject.is_embedded() { 4321 } else { 20 };
    let script = format!("sleep {seconds} & echo done");
    let command = ["sh", "-c", &script];
    let done = subject.ask(exec(subject.client(), &id, &command, 60))?;
    assert_eq!(done.stdout, b"done\n");
    Ok(())
}

#[test]
fn endless_output_does_not_fill_the_runtimes_memory() -> Result<()> {
    let subject = Subject::shared()?;
    let sandbox = subject.sandbox("flood")?;
    let id = sandbox.waiting("main")?;
    let some = ["sh", "-c", "head -c 3000000 /dev/zero"];
    let done = subject.ask(exec(subject.client(), &id, &some, 60))?;
    assert_eq!(done.stdout.len(), 3_000_000);
    let flood = ["sh", "-c", "head -c 40000000 /dev/zero"];
    let answer = subject.ask(exec(subject.client(), &id, &flood, 60));
    match answer {
        // The kubelet's own limit of a message is 16 MiB.
        Ok(done) => assert!(done.stdout.len() <= 16 << 20, "{}", done.stdout.len()),
        Err(error) => assert_eq!(error.kind, CriErrorKind::ResourceExhausted, "{error}"),
    }
    let after = subject.ask(exec(subject.client(), &id, &["echo", "still here"], 10))?;
    assert_eq!(after.stdout, b"still here\n");
    Ok(())
}

#[test]
fn commands_that_cannot_be_executed_are_reported() -> Result<()> {
    let subject = Subject::shared()?;
    let sandbox = subject.sandbox("missing")?;
    let id = sandbox.waiting("main")?;
    let client = subject.client();
    let error = refused(subject.ask(exec(client, &id, &["/no/such/program"], 10)));
    assert!(error.message.contains("/no/such/program"), "{error}");
    let error = refused(subject.ask(exec(client, &id, &["/etc/passwd"], 10)));
    assert!(
        error.message.to_lowercase().contains("permission denied"),
        "{error}"
    );
    subject.invalid(subject.ask(exec(client, &id, &[], 10)));
    Ok(())
}

#[test]
fn only_a_running_container_runs_commands() -> Result<()> {
    let subject = Subject::shared()?;
    let sandbox = subject.sandbox("idle")?;
    let client = subject.client();
    let created = sandbox.create(sandbox.script("created", WAITING))?;
    subject.wrong_state(subject.ask(exec(client, &created, &["true"], 10)));
    let ended = sandbox.waiting("ended")?;
    subject.ask(stop(client, &ended, 10))?;
    subject.wrong_state(subject.ask(exec(client, &ended, &["true"], 10)));
    not_found(subject.ask(exec(client, &"d".repeat(64), &["true"], 10)));
    Ok(())
}

#[test]
fn commands_end_with_their_container() -> Result<()> {
    let subject = Subject::shared()?;
    let sandbox = subject.sandbox("along")?;
    let id = sandbox.start(sandbox.script("main", "sleep 1"))?;
    let answer = subject.ask(exec(subject.client(), &id, &["sleep", "1000"], 50));
    if let Ok(done) = answer {
        assert_eq!(done.exit_code, 137);
    }
    assert_eq!(sandbox.ended(&id)?.exit_code, 0);
    Ok(())
}
