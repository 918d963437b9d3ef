//! `rubelet run`: errors before anything starts, and the program name `kubelet`.

use std::process::{Command, Stdio};

use rubelet_testbed::agent::{Agent, AgentRuntime, binary};
use rubelet_testbed::status::is_ready;
use rubelet_testbed::{TestRuntime, proc, wait};
use rustix::process::{Pid, Signal, kill_process};

use crate::outside::{PodText, TIMEOUT};
use crate::{linked_as, refused};

#[test]
fn invalid_flags_exit_with_code_2_and_one_line() {
    let rows = [
        ("--no-such-flag", "unknown flag --no-such-flag"),
        (
            "--bootstrap-kubeconfig=/x",
            "--bootstrap-kubeconfig=/x: needs --kubeconfig",
        ),
        ("--healthz-port=many", "--healthz-port"),
        ("--v=loud", "--v"),
        ("stray", "unexpected argument \"stray\""),
        ("--pod-manifest-path", "--pod-manifest-path"),
    ];
    let directory = tempfile::tempdir().unwrap();
    let kubelet = linked_as("kubelet", directory.path());
    for (flag, part) in rows {
        let root = directory.path().join("root");
        let as_rubelet = refused(
            Command::new(binary().unwrap())
                .args(["run", "--root-dir"])
                .arg(&root)
                .arg(flag),
        );
        let as_kubelet = refused(
            Command::new(&kubelet)
                .arg("--root-dir")
                .arg(&root)
                .arg(flag),
        );
        assert_eq!(as_rubelet, as_kubelet, "{flag}");
        assert_eq!((as_rubelet.code, &*as_rubelet.stdout), (2, ""), "{flag}");
        let first = as_rubelet.stderr.lines().next().unwrap();
        assert!(first.starts_with("error: "), "{}", as_rubelet.stderr);
        assert!(first.contains(part), "{}", as_rubelet.stderr);
        assert!(
            as_rubelet.stderr.lines().count() <= 2,
            "{}",
            as_rubelet.stderr
        );
        assert!(!root.exists(), "{flag}: nothing was begun");
    }
}

#[test]
fn an_invalid_configuration_is_an_error_and_nothing_starts() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let config = directory.join("config.yaml");
    let socket = directory.join("api.sock");
    let text = format!(
        "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n\
         rubelet:\n  socket: {}\nfileCheckFrequency: -5\n",
        socket.display()
    );
    std::fs::write(&config, text).unwrap();
    let output = refused(
        Command::new(binary().unwrap())
            .arg("run")
            .arg("--config")
            .arg(&config)
            .arg("--root-dir")
            .arg(directory.join("root")),
    );
    assert_eq!((output.code, &*output.stdout), (1, ""));
    let expected = format!("error: {}:5:", config.display());
    assert!(output.stderr.starts_with(&expected), "{}", output.stderr);
    assert!(
        output.stderr.contains("fileCheckFrequency: "),
        "{}",
        output.stderr
    );
    assert_eq!(
        output.stderr.matches("error").count(),
        1,
        "{}",
        output.stderr
    );
    assert!(!socket.exists() && !directory.join("root").exists());

    let missing = directory.join("missing.yaml").display().to_string();
    let output = refused(Command::new(binary().unwrap()).args(["run", "--config", &missing]));
    assert_eq!(output.code, 1);
    assert!(output.stderr.contains(&missing), "{}", output.stderr);
}

#[test]
fn an_invalid_host_name_is_refused_at_the_start() {
    let directory = tempfile::tempdir().unwrap();
    let output = refused(
        Command::new(binary().unwrap())
            .arg("run")
            .arg("--root-dir")
            .arg(directory.path().join("root"))
            .arg("--hostname-override=my_host"),
    );
    assert_eq!(output.code, 1);
    let expected = "error: \"my_host\" (--hostname-override) is not a valid node name";
    assert!(output.stderr.contains(expected), "{}", output.stderr);
}

#[test]
fn called_as_kubelet_it_runs_the_agent() {
    let runtime = TestRuntime::start().unwrap();
    let directory = runtime.scratch().subdir("kubelet").unwrap();
    let kubelet = linked_as("kubelet", &directory);
    let version = refused(Command::new(&kubelet).arg("--version"));
    assert_eq!(version.code, 0);
    assert!(version.stdout.starts_with("Kubernetes v1."), "{version:?}");

    // An agent of the test bed, which is not started, provides directories and a configuration.
    let prepared = Agent::builder(&runtime).prepare().unwrap();
    let pod = PodText::new("web");
    prepared.write_manifest("web.yaml", &pod.yaml()).unwrap();
    let mut command = runtime.scratch().command(&kubelet);
    if matches!(runtime, TestRuntime::Embedded(_)) {
        // Under this name the defaults are the kubelet's: the socket of containerd.
        command.arg("--container-runtime-endpoint=embedded");
    }
    let mut child = command
        .arg("--config")
        .arg(prepared.config_path())
        .arg(format!(
            "--pod-manifest-path={}",
            prepared.manifest_dir().display()
        ))
        .arg(format!("--root-dir={}", prepared.root_dir().display()))
        .args(runtime.agent_flags())
        .args(["--hostname-override=testnode", "--v=2"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    wait::until("the pod runs", TIMEOUT, || {
        let pod = prepared.pod("web").unwrap_or_default();
        Ok(pod.filter(is_ready).map(drop))
    })
    .unwrap();
    // What it does to stay small does not show.
    let of = |pid: u32, file: &str| std::fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap();
    assert_eq!(of(child.id(), "comm"), "kubelet\n");
    let pids = proc::all_pids().into_iter();
    let supervisors =
        pids.filter(|pid| proc::Stat::of(*pid).is_some_and(|it| it.parent == child.id()));
    for supervisor in supervisors {
        let variables = of(supervisor, "environ");
        assert!(!variables.contains("GLIBC_TUNABLES"), "{variables}");
    }
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    kill_process(pid, Signal::TERM).unwrap();
    assert!(child.wait().unwrap().success());
}
