//! Flags of the embedded container runtime, which no kubelet has.

use super::super::{Flag, FlagKind, FlagKind::*, Role::Field};

const fn field(name: &'static str, kind: FlagKind, path: &'static str) -> Flag {
    super::flag(name, kind, Field(path), "", "")
}

pub(super) const FLAGS: &[Flag] = &[
    field("runtime-bridge", Text, "rubelet.runtime.bridge"),
    field(
        "runtime-bridge-subnets",
        List,
        "rubelet.runtime.bridgeSubnets",
    ),
    field("runtime-cdi-spec-dirs", List, "rubelet.runtime.cdiSpecDirs"),
    field("runtime-cgroup", Text, "rubelet.runtime.cgroup"),
    field("runtime-cni-bin-dirs", List, "rubelet.runtime.cniBinDirs"),
    field("runtime-cni-conf-dir", Text, "rubelet.runtime.cniConfDir"),
    field(
        "runtime-image-pull-progress-timeout",
        Duration,
        "rubelet.runtime.imagePullProgressTimeout",
    ),
    field(
        "runtime-registry-hosts-dirs",
        List,
        "rubelet.runtime.registryHostsDirs",
    ),
    field("runtime-root-dir", Text, "rubelet.runtime.rootDir"),
    field("runtime-run-dir", Text, "rubelet.runtime.runDir"),
    field("runtime-socket", Text, "rubelet.runtime.socket"),
];
