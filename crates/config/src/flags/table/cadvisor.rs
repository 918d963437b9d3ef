//! Flags of cAdvisor, a library inside the kubelet that Rubelet does not have.

use super::super::{Flag, FlagKind, FlagKind::*, Role::Ignored};

const NO_CADVISOR: &str = "Rubelet measures containers itself, without cAdvisor";

const fn ignored(
    name: &'static str,
    kind: FlagKind,
    default: &'static str,
    help: &'static str,
) -> Flag {
    super::flag(name, kind, Ignored(NO_CADVISOR), default, help)
}

pub(super) const FLAGS: &[Flag] = &[
    ignored(
        "housekeeping-interval",
        Duration,
        "10s",
        "Time between two measurements of containers.",
    ),
    ignored(
        "max-housekeeping-interval",
        Duration,
        "15s",
        "Longest time between two measurements of containers.",
    ),
    ignored(
        "application-metrics-count-limit",
        Int32,
        "100",
        "How many metrics of applications are kept.",
    ),
    ignored(
        "boot-id-file",
        Text,
        "/proc/sys/kernel/random/boot_id",
        "Files with the boot id.",
    ),
    ignored(
        "container-hints",
        Text,
        "/etc/cadvisor/container_hints.json",
        "File with hints about containers.",
    ),
    ignored(
        "containerd",
        Text,
        "/run/containerd/containerd.sock",
        "Address of containerd.",
    ),
    ignored(
        "containerd-namespace",
        Text,
        "k8s.io",
        "Namespace in containerd.",
    ),
    ignored(
        "enable-load-reader",
        Bool,
        "false",
        "Measures the load of CPUs.",
    ),
    ignored(
        "event-storage-age-limit",
        Text,
        "default=0",
        "How long events are kept.",
    ),
    ignored(
        "event-storage-event-limit",
        Text,
        "default=0",
        "How many events are kept.",
    ),
    ignored(
        "global-housekeeping-interval",
        Duration,
        "1m0s",
        "Time between two rounds of housekeeping.",
    ),
    ignored(
        "log-cadvisor-usage",
        Bool,
        "false",
        "Logs cAdvisor's own use of resources.",
    ),
    ignored(
        "machine-id-file",
        Text,
        "/etc/machine-id,/var/lib/dbus/machine-id",
        "Files with the machine id.",
    ),
    ignored(
        "storage-driver-buffer-duration",
        Duration,
        "1m0s",
        "How long measurements are buffered.",
    ),
    ignored(
        "storage-driver-db",
        Text,
        "cadvisor",
        "Name of a database for measurements.",
    ),
    ignored(
        "storage-driver-host",
        Text,
        "localhost:8086",
        "Address of that database.",
    ),
    ignored(
        "storage-driver-password",
        Text,
        "root",
        "Password for that database.",
    ),
    ignored(
        "storage-driver-secure",
        Bool,
        "false",
        "Uses a secure connection to that database.",
    ),
    ignored(
        "storage-driver-table",
        Text,
        "stats",
        "Name of the table there.",
    ),
    ignored(
        "storage-driver-user",
        Text,
        "root",
        "User of that database.",
    ),
];
