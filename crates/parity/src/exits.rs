//! How and when the program exits.
//!
//! Source: `cmd/kubelet/app/server.go`, `pkg/kubelet/kubelet.go` and `pkg/kubelet/certificate/transport.go`
//! of Kubernetes 1.36.

use super::row::{ParityRow, better, differs, same};

/// What happens, and how it compares.
pub(crate) const EXITS: &[ParityRow] = &[
    same("SIGTERM, SIGINT: exit code 0, pods go on"),
    same("SIGHUP: ends at once"),
    differs(
        "a second SIGTERM while it stops",
        "the kubelet ends with 1; a stop here has a bound of its own",
    ),
    differs(
        "a flag that is unknown or has a bad value",
        "exit code 2; the kubelet ends with 1",
    ),
    better(
        "a configuration that is not valid: exit code 1",
        "one error with file, line, field and a hint",
    ),
    same("swap with failSwapOn, cgroup v1 with failCgroupV1: exit code 1"),
    same("a port or socket that is taken: exit code 1"),
    better(
        "the container runtime does not answer at the start",
        "waits for it and says so, where the kubelet ends with 1",
    ),
    better(
        "the API server does not answer at the start",
        "static pods and pods that were there run, and a first certificate is asked for until it comes",
    ),
    better(
        "two agents with one --root-dir",
        "the second one refuses to start",
    ),
    same("--exit-on-lock-contention: exit code 0"),
    differs(
        "the client certificate has expired",
        "asks for another with --bootstrap-kubeconfig and stays, where the kubelet ends with 1",
    ),
    same("a renewed certificate: new connections use it, no restart"),
    same("a changed configuration file: is read at the next start"),
    better(
        "a panic",
        "in the task of one pod: it starts again, with the event TaskDied; in the node's own tasks: exit code 1. The kubelet ends",
    ),
    same("READY=1, STOPPING=1 and WATCHDOG=1 to systemd"),
    better(
        "a shutdown of the machine",
        "waits for pods as configured, also after logind or D-Bus was restarted; a signal that only looks like logind's has no effect",
    ),
];
