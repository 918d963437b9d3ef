//! Logs in the CRI's format, and ReopenContainerLog.

use anyhow::Result;
use futures_util::future::join_all;
use rubelet_cri::{CriResult, RuntimeService, v1};
use rubelet_cri_grpc::CriClient;
use rubelet_testbed::wait;

use crate::subject::{Subject, TIMEOUT, WAITING, exec, not_found, stop, text_of};

async fn reopen(client: &CriClient, id: &str) -> CriResult<()> {
    let request = v1::ReopenContainerLogRequest {
        container_id: id.to_owned(),
    };
    client.reopen_container_log(request).await.map(drop)
}

#[test]
fn each_log_line_has_time_stream_and_tag() -> Result<()> {
    let subject = Subject::shared()?;
    let sandbox = subject.sandbox("lines")?;
    let script = "echo first; echo second >&2; echo; printf 'no end'";
    let id = sandbox.start(sandbox.script("main", script))?;
    sandbox.ended(&id)?;
    sandbox.wait_log("main", "no end")?;
    let log = sandbox.log("main")?;
    assert_eq!(log.len(), 4, "{log:#?}");
    let of = |stream: &str| -> Vec<(&str, &str)> {
        log.iter()
            .filter(|line| line.stream == stream)
            .map(|line| (line.tag.as_str(), line.text.as_str()))
            .collect()
    };
    assert_eq!(of("stdout")[..2], [("F", "first"), ("F", "")]);
    assert_eq!(of("stdout")[2].1, "no end");
    assert_eq!(of("stderr"), [("F", "second")]);
    for line in &log {
        let (date, time) = line.time.split_once('T').unwrap();
        assert_eq!(date.len(), 10, "{line:?}");
        assert!(
            time.contains('.') && (time.ends_with('Z') || time.contains(['+', '-'])),
            "{line:?}"
        );
    }
    Ok(())
}

#[test]
fn a_long_line_is_split_into_partial_entries() -> Result<()> {
    let subject = Subject::shared()?;
    let sandbox = subject.sandbox("long")?;
    let script = "head -c 40000 /dev/zero | tr '\\0' x; echo; echo next";
    let id = sandbox.start(sandbox.script("main", script))?;
    sandbox.ended(&id)?;
    sandbox.wait_log("main", "next")?;
    let log = sandbox.log("main")?;
    let tags: Vec<&str> = log.iter().map(|line| line.tag.as_str()).collect();
    assert_eq!(tags.last(), Some(&"F"));
    assert!(
        tags.iter().filter(|tag| **tag == "P").count() >= 2,
        "{tags:?}"
    );
    assert_eq!(
        text_of(&log, "stdout"),
        format!("{}\nnext\n", "x".repeat(40000))
    );
    Ok(())
}

#[test]
fn bytes_that_are_not_utf_8_are_kept() -> Result<()> {
    let subject = Subject::shared()?;
    let sandbox = subject.sandbox("bytes")?;
    let script = "printf 'a\\377\\000b\\n'";
    let id = sandbox.start(sandbox.script("main", script))?;
    sandbox.ended(&id)?;
    wait::until("the log is written", TIMEOUT, || {
        let bytes = std::fs::read(sandbox.log_path("main"))?;
        Ok(bytes.ends_with(b" stdout F a\xff\0b\n").then_some(()))
    })
}

#[test]
fn large_output_is_complete_and_in_order() -> Result<()> {
    let subject = Subject::shared()?;
    let sandbox = subject.sandbox("much")?;
    let output = sandbox.output("main", "seq 1 20000")?;
    let wanted: String = (1..=20000).map(|number| format!("{number}\n")).collect();
    let text = wait::until("all is written", TIMEOUT, || {
        let text = text_of(&sandbox.log("main")?, "stdout");
        Ok((text.len() == wanted.len()).then_some(text))
    });
    assert!(text.unwrap_or(output) == wanted);
    Ok(())
}

#[test]
fn after_a_rotation_the_log_continues_in_a_new_file() -> Result<()> {
    let subject = Subject::shared()?;
    let sandbox = subject.sandbox("rotated")?;
    let script = "mkfifo /tmp/in; echo ready; while :; do cat /tmp/in; done";
    let id = sandbox.start(sandbox.script("main", script))?;
    sandbox.wait_log("main", "ready")?;
    let say = |word: &str| -> Result<()> {
        let command = format!("echo {word} > /tmp/in");
        subject.ask(exec(subject.client(), &id, &["sh", "-c", &command], 30))?;
        Ok(())
    };
    say("before")?;
    sandbox.wait_log("main", "before")?;
    let old = sandbox.log_path("main.old");
    std::fs::rename(sandbox.log_path("main"), &old)?;
    say("between")?;
    wait::until("the renamed file goes on", TIMEOUT, || {
        Ok(std::fs::read_to_string(&old)?
            .contains("between")
            .then_some(()))
    })?;
    subject.ask(reopen(subject.client(), &id))?;
    say("after")?;
    sandbox.wait_log("main", "after")?;
    let texts: Vec<_> = sandbox
        .log("main")?
        .into_iter()
        .map(|line| line.text)
        .collect();
    assert_eq!(texts, ["after"]);
    let many = subject.ask(join_all((0..4).map(|_| reopen(subject.client(), &id))));
    assert!(many.iter().all(Result::is_ok), "{many:#?}");
    say("still")?;
    sandbox.wait_log("main", "still")
}

#[test]
fn only_the_log_of_a_running_container_is_reopened() -> Result<()> {
    let subject = Subject::shared()?;
    let sandbox = subject.sandbox("reopened")?;
    let client = subject.client();
    not_found(subject.ask(reopen(client, &"c".repeat(64))));
    let created = sandbox.create(sandbox.script("created", WAITING))?;
    subject.wrong_state(subject.ask(reopen(client, &created)));
    let ended = sandbox.waiting("ended")?;
    subject.ask(stop(client, &ended, 10))?;
    subject.wrong_state(subject.ask(reopen(client, &ended)));
    Ok(())
}

#[test]
fn a_container_without_a_log_path_writes_none() -> Result<()> {
    let subject = Subject::shared()?;
    let sandbox = subject.sandbox("silent")?;
    let mut config = sandbox.script("main", "echo into nothing");
    config.log_path = String::new();
    let id = sandbox.start(config)?;
    assert_eq!(sandbox.ended(&id)?.exit_code, 0);
    let entries = std::fs::read_dir(&sandbox.config.log_directory)?.count();
    assert_eq!(entries, 0);
    Ok(())
}
