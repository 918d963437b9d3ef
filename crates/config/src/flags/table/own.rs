//! Flags without a field of the configuration.

use super::super::{CERT_DIR, Flag, FlagKind::*, ROOT_DIR, Role::*};
use super::flag;
use crate::field::Effect::{Cluster, Differs, NotYet, Works};

pub(super) const FLAGS: &[Flag] = &[
    flag(
        "help",
        Bool,
        Own(Works),
        "false",
        "Shows the flags, and ends. Short form: -h.",
    ),
    flag(
        "version",
        Version,
        Own(Works),
        "false",
        "Shows the version, and ends.",
    ),
    flag(
        "config",
        Text,
        Own(Works),
        "",
        "File with a KubeletConfiguration.",
    ),
    flag(
        "config-dir",
        Text,
        Own(Works),
        "",
        "Directory of drop-ins: files that end in .conf, with a KubeletConfiguration each, which are \
         merged into that of --config in the order of their names.",
    ),
    flag(
        "root-dir",
        Text,
        Own(Works),
        ROOT_DIR,
        "Directory of the pods' volumes and all other data.",
    ),
    flag(
        "hostname-override",
        Text,
        Own(Works),
        "",
        "Name of the node in place of the machine's host name.",
    ),
    flag(
        "node-ip",
        NodeIps,
        Own(Works),
        "",
        "Address of the node, or one of each family.",
    ),
    flag(
        "node-labels",
        Labels,
        Own(Cluster),
        "",
        "Labels for the Node object.",
    ),
    flag(
        "kubeconfig",
        Text,
        Own(Works),
        "",
        "How to reach the API server: with it the machine is a node of a cluster, without it it stands \
         alone.",
    ),
    flag(
        "bootstrap-kubeconfig",
        Text,
        Own(Works),
        "",
        "How to reach the API server for a first certificate, when the file of --kubeconfig is missing \
         or its certificate has expired. That file is written then. Needs --kubeconfig.",
    ),
    flag(
        "cert-dir",
        Text,
        Own(Works),
        CERT_DIR,
        "Directory of the certificates that are made here or issued by the cluster.",
    ),
    flag(
        "cloud-provider",
        Text,
        Own(Cluster),
        "",
        "`external` when a cloud looks after the node.",
    ),
    flag(
        "seccomp-default",
        Bool,
        Own(Works),
        "false",
        "Switches the field `seccompDefault` on; false leaves it as it is.",
    ),
    flag(
        "lock-file",
        Text,
        Own(Works),
        "",
        "File that is locked while the agent runs.",
    ),
    flag(
        "exit-on-lock-contention",
        Bool,
        Own(Works),
        "false",
        "Ends when somebody else opens the file of --lock-file.",
    ),
    flag(
        "image-credential-provider-config",
        Text,
        Own(Works),
        "",
        "File that says which plugins give passwords for registries.",
    ),
    flag(
        "image-credential-provider-bin-dir",
        Text,
        Own(Works),
        "",
        "Directory of those plugins.",
    ),
    flag(
        "runtime-cgroups",
        Text,
        Own(NotYet),
        "",
        "Cgroup of the runtime, for its metrics.",
    ),
    flag(
        "minimum-container-ttl-duration",
        Duration,
        Own(NotYet),
        "0s",
        "How long an ended container is kept.",
    ),
    flag(
        "maximum-dead-containers-per-container",
        Int32,
        Own(Differs(
            "the newest ended instance of each container is kept, as by default",
        )),
        "1",
        "How many ended instances of each container are kept.",
    ),
    flag(
        "maximum-dead-containers",
        Int32,
        Own(NotYet),
        "-1",
        "How many ended containers are kept in all; -1 means any number.",
    ),
    flag(
        "experimental-mounter-path",
        Text,
        Own(NotYet),
        "",
        "Program that mounts volumes.",
    ),
    flag(
        "experimental-allocatable-ignore-eviction",
        Bool,
        Own(NotYet),
        "false",
        "Leaves eviction thresholds out of what the node offers.",
    ),
    flag(
        "pod-infra-container-image",
        Text,
        Ignored("the runtime chooses the image of sandboxes, and the kubelet has dropped the flag"),
        "",
        "Image of the pods' sandboxes.",
    ),
];
