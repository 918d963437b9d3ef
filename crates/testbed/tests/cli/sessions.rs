//! `rubelet exec`, `attach`, `port-forward`, `cp` and `debug -it` with running containers.

use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

use rubelet_testbed::agent::CliOutput;
use rubelet_testbed::http::get_tcp;
use rubelet_testbed::images::BUSYBOX_IMAGE;
use rubelet_testbed::runtime::Kind;
use rubelet_testbed::{Agent, TestRuntime};
use rustix::process::{Pid, Signal, kill_process};

use crate::outside::children::{Lines, run_with_input};
use crate::outside::terminal::OnTerminal;
use crate::outside::{self, PodText, TIMEOUT};

fn with(agent: &Agent, words: &[&str], input: &[u8]) -> CliOutput {
    let (output, code) = run_with_input(agent.cli_command().args(words), input);
    CliOutput {
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: output.stderr,
        code,
    }
}

#[test]
fn commands_run_ports_are_forwarded_and_files_copied() {
    let script = "mkdir -p /www; echo a page > /www/index.html; exec httpd -f -p 8080 -h /www";
    let runtime = TestRuntime::start().unwrap();
    let mut pods = vec![PodText::new("web").script(script)];
    // Not every containerd supports user namespaces.
    if runtime.kind() == Kind::Embedded {
        pods.push(PodText::new("mapped").spec("hostUsers", false));
    }
    let agent = outside::agent_on(&runtime, &pods);
    let exec = |words: &[&str], input: &[u8]| with(&agent, &[&["exec"], words].concat(), input);
    let ended = exec(&["web", "--", "echo", "hello"], b"");
    assert_eq!(
        (ended.code, &*ended.stdout, &*ended.stderr),
        (0, "hello\n", "")
    );
    let ended = exec(
        &["-i", "web", "--", "sh", "-c", "cat; echo err >&2; exit 7"],
        b"in",
    );
    let told = "err\ncommand terminated with exit code 7\n";
    assert_eq!(
        (ended.code, &*ended.stdout, &*ended.stderr),
        (7, "in", told)
    );
    let ended = exec(&["web", "--", "no-such-command"], b"");
    assert_ne!(ended.code, 0, "{ended:?}");
    assert!(ended.stderr.contains("no-such-command"), "{ended:?}");

    let words = ["port-forward", "web", ":8080", "--address", "127.0.0.1"];
    let mut forwarding = Lines::start(agent.cli_command().args(words));
    let line = forwarding.wait("the port", TIMEOUT, |line| line.ends_with("-> 8080"));
    let address = line.strip_prefix("Forwarding from ").unwrap();
    let (address, _) = address.split_once(" -> ").unwrap();
    // The server of the pod may start a moment after its container.
    exec(
        &[
            "web",
            "--",
            "sh",
            "-c",
            "until wget -qO- 127.0.0.1:8080/index.html; do :; done",
        ],
        b"",
    );
    for _ in 0..2 {
        assert_eq!(get_tcp(address, "/index.html").unwrap().text(), "a page\n");
    }

    for pod in &pods {
        copies(&agent, pod.name());
    }
}

/// Copies a tree into a container and back.
fn copies(agent: &Agent, pod: &str) {
    let home = tempfile::tempdir().unwrap();
    let tree = home.path().join("tree");
    fs::create_dir_all(tree.join("sub")).unwrap();
    fs::write(tree.join("sub/run"), "#!/bin/sh\necho it runs\n").unwrap();
    fs::set_permissions(tree.join("sub/run"), fs::Permissions::from_mode(0o750)).unwrap();
    symlink("sub/run", tree.join("link")).unwrap();
    File::create(tree.join("hole"))
        .unwrap()
        .set_len(1 << 30)
        .unwrap();
    let there = format!("{pod}:/tmp/new");
    let copied = with(agent, &["cp", tree.to_str().unwrap(), &there], b"");
    assert_eq!((copied.code, &*copied.stderr), (0, ""), "{pod}");
    let shows = "cd /tmp/new && ./link && stat -c '%u:%g %a %s' sub/run hole && du -k hole";
    let ended = with(agent, &["exec", pod, "--", "sh", "-c", shows], b"");
    let expected = "it runs\n0:0 750 23\n0:0 644 1073741824\n";
    let (told, blocks) = ended.stdout.split_at(expected.len());
    assert_eq!(told, expected, "{pod}: {ended:?}");
    assert!(blocks.starts_with("0\t"), "{pod}: {ended:?}");
    // Links of a container's process don't redirect the copy.
    let secret = home.path().join("secret");
    fs::write(&secret, "of the host").unwrap();
    let attack = format!(
        "ln -s {} /tmp/new/out; mkfifo /tmp/new/fifo",
        home.path().display()
    );
    with(agent, &["exec", pod, "--", "sh", "-c", &attack], b"");
    let there = format!("{pod}:/tmp/new/out/secret");
    let refused = with(
        agent,
        &["cp", &there, home.path().join("x").to_str().unwrap()],
        b"",
    );
    assert_eq!(refused.code, 1, "{refused:?}");
    let back = home.path().join("back");
    let copied = with(
        agent,
        &["cp", &format!("{pod}:/tmp/new"), back.to_str().unwrap()],
        b"",
    );
    assert_eq!(copied.code, 0, "{copied:?}");
    assert!(copied.stderr.contains("skipped new/fifo"), "{copied:?}");
    assert_eq!(
        fs::metadata(back.join("sub/run")).unwrap().mode() & 0o7777,
        0o750
    );
    assert_eq!(
        fs::read_link(back.join("link")).unwrap().to_str(),
        Some("sub/run")
    );
    let hole = fs::metadata(back.join("hole")).unwrap();
    assert_eq!((hole.len(), hole.blocks()), (1 << 30, 0));
}

#[test]
fn the_terminal_is_restored_after_every_end() {
    let (_runtime, mut agent) = outside::with_pods(&[PodText::new("web")]);
    let shell = |agent: &Agent| {
        let words = ["exec", "-it", "web", "--", "sh"];
        let mut shell = OnTerminal::start(agent.cli_command().args(words));
        // The shell may not have started: input waits for it.
        shell.types("stty size; echo $((40 + 2)) here\r");
        shell.shows("24 80");
        shell.shows("42 here");
        shell
    };
    let mut one = shell(&agent);
    // Ctrl-C belongs to the container. It is sent after the foreground process has printed something: between
    // two commands the shell may lose it.
    one.types("sh -c 'echo $((3 * 3)) now; sleep 1000'\r");
    one.shows("9 now");
    one.types("\x03");
    one.types("echo $((5 * 5)) after\r");
    one.shows("25 after");
    one.types("exit 9\r");
    one.shows("command terminated with exit code 9");
    assert_eq!(one.ends(), Some(9));

    let mut two = shell(&agent);
    let pid = Pid::from_child(&two.child);
    kill_process(pid, Signal::TERM).unwrap();
    assert_eq!(two.ends(), Some(143));

    let mut three = shell(&agent);
    agent.terminate().unwrap();
    three.shows("error: ");
    assert_eq!(three.ends(), Some(1));
}

#[test]
fn a_debug_container_with_a_terminal_is_attached_to() {
    let (_runtime, agent) = outside::with_pods(&[PodText::new("web")]);
    let words = [
        "debug",
        "-it",
        "web",
        "--image",
        BUSYBOX_IMAGE,
        "--target",
        "main",
        "--",
        "sh",
    ];
    let mut debug = OnTerminal::start(agent.cli_command().args(words));
    debug.shows("try pressing enter.");
    debug.types("echo $((40 + 2)); ps | grep -c '[s]leep\\|[w]ait\\|[t]rap'\r");
    debug.shows("42");
    debug.types("exit\r");
    assert_eq!(debug.ends(), Some(0));
    let missing = [
        "debug",
        "-it",
        "web",
        "--image",
        "registry.invalid/none:1",
        "-c",
        "none",
    ];
    let ended = with(&agent, &missing, b"");
    assert_eq!(ended.code, 1, "{ended:?}");
    assert!(
        ended.stderr.contains("container none cannot run: "),
        "{ended:?}"
    );
}

#[test]
fn a_shell_on_the_node_leaves_nothing_behind() {
    let (_runtime, agent) = outside::with_pods(&[PodText::new("web")]);
    let manifests = || {
        let names = fs::read_dir(agent.manifest_dir()).unwrap();
        let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name.contains("shell")).count()
    };
    let words = ["shell", "--image", BUSYBOX_IMAGE];
    let mut shell = OnTerminal::start(agent.cli_command().args(words));
    // The host's processes and files: process 1 is not a container's.
    shell.types("cat /host/proc/1/comm /proc/1/comm; echo $((40 + 2)) here\r");
    shell.shows("42 here");
    assert_eq!(manifests(), 1);
    shell.types("exit 3\r");
    shell.shows("command terminated with exit code 3");
    assert_eq!((shell.ends(), manifests()), (Some(3), 0));

    let mut killed = OnTerminal::start(agent.cli_command().args(words));
    killed.types("echo $((40 + 2)) here\r");
    killed.shows("42 here");
    kill_process(Pid::from_child(&killed.child), Signal::HUP).unwrap();
    assert_eq!((killed.ends(), manifests()), (Some(129), 0));
    let missing = with(&agent, &["shell"], b"");
    assert_eq!(missing.code, 1);
    assert!(missing.stderr.contains("rubelet.toolImage"), "{missing:?}");
}
