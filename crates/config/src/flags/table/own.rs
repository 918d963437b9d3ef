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
        "Prints the flags and exits. Short form: -h.",
    ),
    flag(
        "version",
        Version,
        Own(Works),
        "false",
        "Prints the version and exits.",
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
        "Directory of pod volumes and all other data.",
    ),
    flag(
        "hostname-override",
        Text,
        Own(Works),
        "",
        "Name of the node instead of the machine's host name.",
    ),
    flag(
        "node-ip",
        NodeIps,
        Own(Works),
        "",
        "IP address of the node, or one of each family.",
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
        "Kubeconfig for the API server: with it the machine is a node of a cluster, without it a \
         standalone node.",
    ),
    flag(
        "bootstrap-kubeconfig",
        Text,
        Own(Works),
        "",
        "Kubeconfig for requesting a client certificate if the file of --kubeconfig is missing or its \
         certificate has expired. That file is then written. Needs --kubeconfig.",
    ),
    flag(
        "cert-dir",
        Text,
        Own(Works),
        CERT_DIR,
        "Directory of the certificates that are generated or issued by the cluster.",
    ),
    flag(
        "cloud-provider",
        Text,
        Own(Cluster),
        "",
        "`external` if a cloud provider manages the node.",
    ),
    flag(
        "seccomp-default",
        Bool,
        Own(Works),
        "false",
        "Sets the field `seccompDefault` to true; false leaves it unchanged.",
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
        "Exits when another process opens the file of --lock-file.",
    ),
    flag(
        "image-credential-provider-config",
        Text,
        Own(Works),
        "",
        "File, or directory of files, with a CredentialProviderConfig: which plugins supply credentials for which images.",
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
        Own(Works),
        "",
        "Cgroup of the runtime, whose usage `/stats/summary` shows as the system container `runtime`. Without it: that of the process that listens at containerRuntimeEndpoint.",
    ),
    flag(
        "minimum-container-ttl-duration",
        Duration,
        Own(Differs(
            "a terminated container stays until its pod is removed, its replacement has terminated, or its disk is full",
        )),
        "0s",
        "Minimum age of a terminated container before it is removed.",
    ),
    flag(
        "maximum-dead-containers-per-container",
        Int32,
        Own(Differs(
            "the newest terminated instance of each container is kept, as by default",
        )),
        "1",
        "How many terminated instances of each container are kept.",
    ),
    flag(
        "maximum-dead-containers",
        Int32,
        Own(Differs(
            "one terminated instance of each container stays until its pod is removed or its disk is full",
        )),
        "-1",
        "How many terminated containers are kept in total; -1 means no limit.",
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
        Own(Works),
        "false",
        "Does not subtract eviction thresholds from the allocatable resources of the node.",
    ),
    flag(
        "pod-infra-container-image",
        Text,
        Ignored("the runtime chooses the image of sandboxes, and the kubelet has dropped the flag"),
        "",
        "Image of the pods' sandboxes.",
    ),
];
