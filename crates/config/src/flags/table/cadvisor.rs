//! Flags of cAdvisor, a library that is part of the kubelet and not of Rubelet.

use super::super::{
    Flag, FlagKind,
    FlagKind::*,
    Role::{Ignored, Own},
};
use crate::field::Effect::Works;

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
    super::flag(
        "housekeeping-interval",
        Duration,
        Own(Works),
        "10s",
        "Minimum time between two measurements of containers, which are made on request.",
    ),
    ignored(
        "max-housekeeping-interval",
        Duration,
        "15s",
        "Maximum time between two measurements of containers.",
    ),
    ignored(
        "application-metrics-count-limit",
        Int32,
        "100",
        "How many application metrics are kept.",
    ),
    ignored(
        "boot-id-file",
        Text,
        "/proc/sys/kernel/random/boot_id",
        "Files that contain the boot id.",
    ),
    ignored(
        "container-hints",
        Text,
        "/etc/cadvisor/container_hints.json",
        "File with container hints.",
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
        "Measures the CPU load.",
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
        "Time between two runs of global housekeeping.",
    ),
    ignored(
        "log-cadvisor-usage",
        Bool,
        "false",
        "Logs the resource usage of cAdvisor.",
    ),
    ignored(
        "machine-id-file",
        Text,
        "/etc/machine-id,/var/lib/dbus/machine-id",
        "Files that contain the machine id.",
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
        "Name of the database for measurements.",
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
