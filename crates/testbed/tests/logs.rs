//! Logs of containers: their files, and the output of `rubelet logs`.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, ExitStatus, Stdio};

use anyhow::{Context, Result, ensure};
use rubelet_testbed::agent::CliOutput;
use rubelet_testbed::manifest::{WAIT, pod, shell, waiting, with};
use rubelet_testbed::node::TIMEOUT;
use rubelet_testbed::status::{is_ready, restarts, runs, waits_for};
use rubelet_testbed::{Agent, Node, wait};
use serde_json::{Value, json};

/// The output of `rubelet logs`, which must succeed.
fn logs(node: &Node, words: &[&str]) -> Result<String> {
    let CliOutput {
        stdout,
        stderr,
        code,
    } = command(node, words)?;
    ensure!(
        code == 0,
        "`rubelet logs {words:?}` ended with {code}: {stderr}"
    );
    Ok(stdout)
}

/// Runs `rubelet logs` for the static pod with the first argument as its manifest's name.
fn command(node: &Node, words: &[&str]) -> Result<CliOutput> {
    let full = node.agent().full_name(words[0]);
    let words: Vec<&str> = ["logs", &full]
        .into_iter()
        .chain(words[1..].iter().copied())
        .collect();
    node.agent().cli(&words)
}

/// A container with the directory `dir` of the host on `/gate`.
fn gated(container: Value, dir: &Path) -> Value {
    json!({
        "containers": [with(
            container,
            &json!({ "volumeMounts": [{ "name": "gate", "mountPath": "/gate" }] }),
        )],
        "volumes": [{ "name": "gate", "hostPath": { "path": dir } }],
    })
}

/// A command that waits until a file exists in the directory on `/gate`.
fn until(file: &str) -> String {
    format!("while [ ! -e /gate/{file} ]; do sleep 0.05; done")
}

#[test]
fn log_files_and_links_have_the_kubelets_layout() -> Result<()> {
    let node = Node::shared()?;
    let dir = node.host_dir("layout")?;
    let script = format!(
        "echo to stdout; echo to stderr >&2; [ ! -e /gate/go ] || {{ {WAIT}; }}; {}; exit 1",
        until("go")
    );
    node.apply(&pod("layout", &gated(shell("main", &script), &dir)))?;
    let seen = node.wait_ready("layout")?;
    let uid = seen["metadata"]["uid"].as_str().unwrap_or_default();
    let directory = node
        .agent()
        .pod_logs_dir()
        .join(format!("default_layout-testnode_{uid}"));
    let log = directory.join("main/0.log");
    node.wait_log("layout", "main", "to stderr")?;
    for path in [&directory, &directory.join("main")] {
        assert_eq!(
            fs::metadata(path)?.mode() & 0o7777,
            0o755,
            "{}",
            path.display()
        );
    }
    let text = fs::read_to_string(&log)?;
    let fields: Vec<Vec<&str>> = text
        .lines()
        .map(|line| line.splitn(4, ' ').collect())
        .collect();
    let of = |stream: &str| {
        let found = fields.iter().find(|fields| fields[1] == stream);
        found.with_context(|| format!("{stream} is in the log: {text}"))
    };
    for (stream, said) in [("stdout", "to stdout"), ("stderr", "to stderr")] {
        let fields = of(stream)?;
        assert!(
            fields[0].starts_with("20"),
            "a line begins with its time: {text}"
        );
        assert_eq!(fields[2..], ["F", said]);
    }

    let link = |id: &str| -> PathBuf {
        Path::new("/var/log/containers").join(format!("layout-testnode_default_main-{id}.log"))
    };
    let first = node.running("layout", "main")?.id;
    assert_eq!(fs::read_link(link(&first))?, log);
    fs::write(dir.join("go"), "")?;
    node.wait("layout", "runs again", |pod| {
        restarts(pod, "main") == 1 && runs(pod, "main")
    })?;
    let second = node.running("layout", "main")?.id;
    assert_eq!(fs::read_link(link(&second))?, directory.join("main/1.log"));
    assert!(
        log.exists() && link(&first).symlink_metadata().is_ok(),
        "for --previous"
    );
    node.remove("layout")?;
    node.wait_gone("layout")?;
    for path in [directory, link(&first), link(&second)] {
        assert!(
            path.symlink_metadata().is_err(),
            "{} is left",
            path.display()
        );
    }
    Ok(())
}

/// A running `rubelet logs -f`; killed when it is dropped.
struct Follower {
    child: Child,
    lines: std::io::Lines<BufReader<ChildStdout>>,
}

impl Follower {
    fn start(agent: &Agent, name: &str) -> Result<Self> {
        let mut child = agent
            .cli_command()
            .args(["logs", "-f", &agent.full_name(name)])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let stdout = child.stdout.take().context("its output is a pipe")?;
        Ok(Self {
            child,
            lines: BufReader::new(stdout).lines(),
        })
    }

    /// The next line; `None` at the end of the output.
    fn next(&mut self) -> Result<Option<String>> {
        Ok(self.lines.next().transpose()?)
    }

    fn end(&mut self) -> Result<ExitStatus> {
        wait::until("the follower has ended", TIMEOUT, || {
            Ok(self.child.try_wait()?)
        })
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        // It may have exited by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_log_is_followed_until_its_container_ends() -> Result<()> {
    let node = Node::shared()?;
    let dir = node.host_dir("follow")?;
    let script = format!(
        "echo first; {}; echo second; {}; echo last",
        until("a"),
        until("b")
    );
    let spec = with(
        gated(shell("main", &script), &dir),
        &json!({ "restartPolicy": "Never" }),
    );
    node.apply(&pod("follow", &spec))?;
    node.wait_log("follow", "main", "first")?;
    let mut follower = Follower::start(node.agent(), "follow")?;
    assert_eq!(
        follower.next()?.as_deref(),
        Some("first"),
        "what was there before"
    );
    fs::write(dir.join("a"), "")?;
    assert_eq!(
        follower.next()?.as_deref(),
        Some("second"),
        "what comes meanwhile"
    );
    fs::write(dir.join("b"), "")?;
    assert_eq!(follower.next()?.as_deref(), Some("last"));
    assert_eq!(follower.next()?, None, "it ends with the container");
    assert!(follower.end()?.success());

    // A container that continues: removing its pod ends the log too.
    node.apply(&pod(
        "follow-removed",
        &json!({ "containers": [shell("main", &format!("echo first; {WAIT}"))] }),
    ))?;
    node.wait_log("follow-removed", "main", "first")?;
    let mut follower = Follower::start(node.agent(), "follow-removed")?;
    assert_eq!(follower.next()?.as_deref(), Some("first"));
    node.remove("follow-removed")?;
    assert_eq!(follower.next()?, None, "it ends with the pod");
    follower.end()?;
    Ok(())
}

#[test]
fn logs_of_the_previous_instance_are_shown_on_request() -> Result<()> {
    let node = Node::shared()?;
    let script = "echo run >> /data/runs; n=$(wc -l < /data/runs); echo this is run $n; exit 1";
    let main = with(
        shell("main", script),
        &json!({ "volumeMounts": [{ "name": "data", "mountPath": "/data" }] }),
    );
    let volumes = json!([{ "name": "data", "emptyDir": {} }]);
    node.apply(&pod(
        "previous",
        &json!({ "containers": [main], "volumes": volumes }),
    ))?;
    node.wait("previous", "backs off", |pod| {
        waits_for(pod, "main") == "CrashLoopBackOff" && restarts(pod, "main") == 1
    })?;
    assert_eq!(
        logs(&node, &["previous"])?,
        "this is run 2\n",
        "the one that ended last"
    );
    node.wait("previous", "backs off again", |pod| {
        waits_for(pod, "main") == "CrashLoopBackOff" && restarts(pod, "main") == 2
    })?;
    assert_eq!(logs(&node, &["previous", "--previous"])?, "this is run 3\n");

    let dir = node.host_dir("previous")?;
    let script = format!(
        "if [ -e /gate/again ]; then echo this is run 2; {WAIT}; fi; echo this is run 1; {}; exit 1",
        until("again")
    );
    node.apply(&pod("previous-runs", &gated(shell("main", &script), &dir)))?;
    node.wait_log("previous-runs", "main", "run 1")?;
    let none = command(&node, &["previous-runs", "-p"])?;
    assert_eq!(none.code, 1);
    assert!(
        none.stderr
            .contains("previous terminated container \"main\" in pod")
            && none.stderr.contains("not found"),
        "{}",
        none.stderr
    );
    fs::write(dir.join("again"), "")?;
    node.wait("previous-runs", "runs again", |pod| {
        is_ready(pod) && restarts(pod, "main") == 1
    })?;
    node.wait_log("previous-runs", "main", "run 2")?;
    assert_eq!(logs(&node, &["previous-runs"])?, "this is run 2\n");
    assert_eq!(logs(&node, &["previous-runs", "-p"])?, "this is run 1\n");
    Ok(())
}

#[test]
fn parts_of_a_log_can_be_selected() -> Result<()> {
    let node = Node::shared()?;
    let dir = node.host_dir("parts")?;
    let script = format!(
        // The runtime reads the two streams separately: a later line must be much later.
        "seq 1 5; {}; echo late >&2; sleep 1; printf 'no newline'",
        until("go")
    );
    let mut spec = with(
        gated(shell("main", &script), &dir),
        &json!({ "restartPolicy": "Never", "initContainers": [shell("before", "echo prepared")] }),
    );
    let long = "head -c 40000 /dev/zero | tr '\\0' x; echo; echo after";
    if let Some(containers) = spec["containers"].as_array_mut() {
        containers.push(shell("long", long));
    }
    node.apply(&pod("parts", &spec))?;
    node.wait_log("parts", "main", "5\n")?;
    fs::write(dir.join("go"), "")?;
    node.wait_end("parts")?;
    let main = |words: &[&str]| logs(&node, &[&["parts", "-c", "main"], words].concat());

    let whole = "1\n2\n3\n4\n5\nlate\nno newline";
    assert_eq!(main(&[])?, whole);
    assert_eq!(main(&["--tail", "2"])?, "late\nno newline");
    assert_eq!(main(&["--tail", "0"])?, "");
    assert_eq!(main(&["--tail=-1"])?, whole);
    assert_eq!(main(&["--tail", "100"])?, whole);
    assert_eq!(main(&["--limit-bytes", "5"])?, "1\n2\n3");
    assert_eq!(main(&["--since", "1h"])?, whole);

    let timed = main(&["--timestamps"])?;
    let lines: Vec<(&str, &str)> = timed
        .lines()
        .filter_map(|line| line.split_once(' '))
        .collect();
    let texts: Vec<&str> = lines.iter().map(|(_, text)| *text).collect();
    assert_eq!(texts.join("\n"), whole);
    let times: Vec<&str> = lines.iter().map(|(time, _)| *time).collect();
    assert!(times.is_sorted(), "{timed}");
    assert!(
        times[0].starts_with("20") && times[0].contains('T'),
        "{timed}"
    );
    assert_eq!(main(&["--since-time", times[5]])?, "late\nno newline");
    assert_eq!(
        main(&["--since-time", times[5], "--tail", "1"])?,
        "no newline"
    );
    node.agent()
        .wait_for("a second has passed since the log's end", TIMEOUT, |_| {
            Ok(main(&["--since", "1s"])?.is_empty().then_some(()))
        })?;

    let other = |words: &[&str]| logs(&node, &[&["parts"], words].concat());
    assert_eq!(other(&["-c", "before"])?, "prepared\n", "an init container");
    let long = format!("{}\nafter\n", "x".repeat(40_000));
    assert_eq!(other(&["-c", "long"])?, long, "a long line is one line");
    assert_eq!(other(&["-c", "long", "--tail", "2"])?, long);
    let chosen = command(&node, &["parts"])?;
    assert_eq!(
        chosen.stdout, whole,
        "the first container, where none is named"
    );
    assert!(
        chosen
            .stderr
            .contains("Defaulted container \"main\" out of: main, long, before (init)"),
        "{}",
        chosen.stderr
    );
    Ok(())
}

#[test]
fn a_missing_log_is_reported_with_its_reason() -> Result<()> {
    let node = Node::shared()?;
    let absent = json!({ "image": "localhost/rubelet/absent:1", "imagePullPolicy": "Never" });
    let spec = json!({ "containers": [waiting("main"), with(waiting("absent"), &absent)] });
    node.apply(&pod("errors", &spec))?;
    node.wait("errors", "waits for its image", |pod| {
        runs(pod, "main") && waits_for(pod, "absent") == "ErrImageNeverPull"
    })?;
    let cases: [(&[&str], i32, &str); 5] = [
        (&["nobody"], 1, "\"nobody-testnode\" not found"),
        (
            &["errors", "-c", "nobody"],
            1,
            "container nobody is not valid for pod errors-testnode",
        ),
        (
            &["errors", "-c", "absent"],
            1,
            "container \"absent\" in pod \"errors-testnode\" is waiting to start",
        ),
        (&["errors", "--tail", "many"], 2, "many"),
        (
            &[
                "errors",
                "--since",
                "1h",
                "--since-time",
                "2026-01-01T00:00:00Z",
            ],
            2,
            "cannot be used with",
        ),
    ];
    for (words, code, part) in cases {
        let output = command(&node, words)?;
        assert_eq!(output.code, code, "{words:?}: {}", output.stderr);
        assert!(output.stderr.contains(part), "{words:?}: {}", output.stderr);
        assert_eq!(output.stdout, "", "{words:?}");
    }
    assert_eq!(
        logs(&node, &["errors", "-c", "main"])?,
        "",
        "a container that said nothing"
    );
    Ok(())
}

#[test]
fn a_log_is_complete_after_a_kill_of_the_agent() -> Result<()> {
    let mut node = Node::start()?;
    let count = "i=0; while :; do i=$((i + 1)); echo $i; usleep 20000; done";
    node.apply(&pod(
        "counter",
        &json!({ "containers": [shell("main", count)] }),
    ))?;
    node.wait_log("counter", "main", "\n10\n")?;
    let mut follower = Follower::start(node.agent(), "counter")?;
    assert_eq!(follower.next()?.as_deref(), Some("1"));
    let id = node.running("counter", "main")?.id;

    node.agent_mut().kill9()?;
    while follower.next().is_ok_and(|line| line.is_some()) {}
    assert_eq!(
        follower.end()?.code(),
        Some(1),
        "a log that was cut off is no end"
    );
    let log = |node: &Node| {
        let logs = node.agent().pod_logs_dir();
        let pod = fs::read_dir(logs)?
            .flatten()
            .next()
            .context("the pod has a log directory")?;
        Ok::<_, anyhow::Error>(
            fs::read_to_string(pod.path().join("main/0.log"))?
                .lines()
                .count(),
        )
    };
    let before = log(&node)?;
    wait::until("the container has gone on alone", TIMEOUT, || {
        Ok((log(&node)? > before + 10).then_some(()))
    })?;
    node.agent_mut().start()?;
    node.wait_ready("counter")?;
    assert_eq!(
        node.running("counter", "main")?.id,
        id,
        "the same container"
    );
    let whole = logs(&node, &["counter"])?;
    let numbers: Vec<usize> = whole.lines().filter_map(|line| line.parse().ok()).collect();
    assert!(numbers.len() > before + 10, "{} lines", numbers.len());
    let expected: Vec<usize> = (1..=numbers.len()).collect();
    assert_eq!(numbers, expected, "no line is missing or doubled");

    // The next instance has a log of its own.
    let pid = node.truth().pid(&id)?;
    rubelet_testbed::cleanup::processes::kill(pid)?;
    node.wait("counter", "runs again", |pod| {
        restarts(pod, "main") == 1 && runs(pod, "main")
    })?;
    node.wait_log("counter", "main", "1\n")?;
    assert!(logs(&node, &["counter"])?.starts_with("1\n"));
    let previous = logs(&node, &["counter", "--previous"])?;
    assert!(previous.starts_with(&whole), "the log before is kept whole");
    Ok(())
}

/// The number of consecutive lines from 1 in a log.
fn numbers_from_one(text: &str) -> Result<usize> {
    let mut count = 0;
    for line in text.lines() {
        count += 1;
        let expected = line.split(' ').next() == Some(count.to_string().as_str());
        ensure!(expected, "line {count} is {line:?}");
    }
    Ok(count)
}

#[test]
fn a_rotated_log_loses_and_repeats_no_line() -> Result<()> {
    let node = Node::start_with(|builder| {
        builder
            .config("containerLogMaxSize", "64Ki")
            .config("containerLogMaxFiles", 100)
            .config("containerLogMonitorInterval", "3s")
    })?;
    let dir = node.host_dir("rotate")?;
    let filler = "x".repeat(100);
    let script = format!(
        "i=0; while [ ! -e /gate/enough ]; do i=$((i + 1)); echo $i {filler}; usleep 500; done"
    );
    let spec = with(
        gated(shell("main", &script), &dir),
        &json!({ "restartPolicy": "Never" }),
    );
    node.apply(&pod("rotate", &spec))?;
    node.wait_log("rotate", "main", "1 ")?;
    let mut follower = Follower::start(node.agent(), "rotate")?;
    let files = || -> Result<Vec<String>> {
        let pod = fs::read_dir(node.agent().pod_logs_dir())?.flatten().next();
        let directory = pod.context("the pod has a log directory")?.path();
        let entries = fs::read_dir(directory.join("main"))?.flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        Ok(names.collect())
    };
    // Reads slowly, so that the pipe blocks: the client is slower than the container.
    let compressed = wait::until("two files are compressed", TIMEOUT, || {
        let files = files()?;
        let count = files.iter().filter(|name| name.ends_with(".gz")).count();
        Ok((count >= 2).then_some(files))
    })?;
    fs::write(dir.join("enough"), "")?;
    let mut followed = String::new();
    while let Some(line) = follower.next()? {
        followed.push_str(&line);
        followed.push('\n');
    }
    assert!(follower.end()?.success());
    let count = numbers_from_one(&followed)?;
    let whole = logs(&node, &["rotate"])?;
    assert_eq!(numbers_from_one(&whole)?, count, "of {compressed:?}");
    let tail = logs(&node, &["rotate", "--tail", "3"])?;
    assert_eq!(tail.lines().count(), 3);
    assert!(whole.ends_with(&tail));

    // All files are removed with the pod.
    node.remove("rotate")?;
    node.wait_gone("rotate")?;
    assert_eq!(fs::read_dir(node.agent().pod_logs_dir())?.count(), 0);
    Ok(())
}
