//! Starts of an agent that fail immediately.

use std::process::Command;

use rubelet_testbed::agent::binary;

use crate::commands::message;
use crate::snapshot::Snapshot;

const KIND: &str = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n";

#[test]
fn starts_with_bad_flags_files_or_directories() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name).display().to_string();
    let mut said = Snapshot::default();
    said.replace(directory.path().display().to_string(), "DIR");
    let root = format!("--root-dir={}", at("root"));
    let no_runtime = format!("--container-runtime-endpoint=unix://{}", at("none.sock"));
    // The socket is opened before a kubeconfig is read.
    let base = at("base.yaml");
    let text = format!("{KIND}rubelet:\n  socket: {}\n", at("api.sock"));
    std::fs::write(&base, text).unwrap();
    let run = |words: &[&str]| {
        let mut command = Command::new(binary().unwrap());
        // Even a start that is not refused must not touch directories of the machine.
        command.args(["run", &root, &no_runtime]);
        message(command.args(words))
    };
    for (problem, flags) in [
        ("A flag that is not there", &["--no-such-flag"][..]),
        ("A flag without its value", &["--pod-manifest-path"]),
        ("A flag whose value is no number", &["--healthz-port=many"]),
        ("A flag that needs another", &["--bootstrap-kubeconfig=/x"]),
        (
            "A name that no node can have",
            &["--hostname-override=my_host"],
        ),
        (
            "A configuration that is missing",
            &["--config", &at("missing.yaml")],
        ),
        (
            "A kubeconfig that is missing",
            &["--config", &base, "--kubeconfig", &at("missing.conf")],
        ),
    ] {
        said.add(problem, &run(flags));
    }
    for (problem, text) in [
        ("A configuration that is no YAML", format!("{KIND}a: [\n")),
        (
            "A configuration of another kind",
            "apiVersion: v1\nkind: Pod\n".to_owned(),
        ),
        ("A field that is not there", format!("{KIND}maxPod: 3\n")),
        (
            "A field with a value out of range",
            format!("{KIND}fileCheckFrequency: -5\n"),
        ),
        (
            "A field with a value of another type",
            format!("{KIND}maxPods: many\n"),
        ),
        (
            "A field with an unknown value",
            format!("{KIND}cgroupDriver: none\n"),
        ),
    ] {
        std::fs::write(at("config.yaml"), text).unwrap();
        said.add(problem, &run(&["--config", &at("config.yaml")]));
    }
    std::fs::write(
        at("kubeconfig"),
        "apiVersion: v1\nkind: Config\ncurrent-context: x\n",
    )
    .unwrap();
    said.add(
        "A kubeconfig without the context that it names",
        &run(&["--config", &base, "--kubeconfig", &at("kubeconfig")]),
    );
    std::fs::write(at("file"), "").unwrap();
    said.add(
        "A root directory that is a file",
        &run(&["--root-dir", &at("file")]),
    );
    said.add(
        "A root directory on a full disk",
        &on_a_full_disk(&at("full")),
    );
    said.compare("start");
}

/// The message of a start in a private mount namespace, in which the root directory has no free space.
fn on_a_full_disk(directory: &str) -> String {
    std::fs::create_dir(directory).unwrap();
    let script = "mount -t tmpfs -o nr_inodes=1 none \"$1\" && exec \"$0\" run --root-dir \"$1\"";
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", script]);
    message(command.arg(binary().unwrap()).arg(directory))
}
