//! The crates, their layers, and the allowed dependencies. A new edge is a decision: it is added
//! here, in the same commit as the edge itself.

/// One crate of the workspace. Names are without the prefix `rubelet-`.
pub(super) struct CrateRule {
    /// The name.
    pub(super) name: &'static str,
    /// The layer of the design. Edges point down: to a lower layer, or within a layer to a crate
    /// that is earlier in the table.
    pub(super) layer: u8,
    /// Whether it is pure: no clock, file, socket, process or async runtime.
    pub(super) pure: bool,
    /// Its allowed dependencies.
    pub(super) uses: &'static [&'static str],
    /// Additional dependencies of its tests.
    pub(super) tests_use: &'static [&'static str],
}

impl CrateRule {
    const fn pure(layer: u8, name: &'static str, uses: &'static [&'static str]) -> Self {
        Self {
            name,
            layer,
            pure: true,
            uses,
            tests_use: &[],
        }
    }

    const fn effects(layer: u8, name: &'static str, uses: &'static [&'static str]) -> Self {
        Self {
            name,
            layer,
            pure: false,
            uses,
            tests_use: &[],
        }
    }

    const fn tests_with(self, tests_use: &'static [&'static str]) -> Self {
        Self { tests_use, ..self }
    }
}

/// The layer of crates that are never part of the product.
const DEV: u8 = 9;

/// The dependencies of the binary, which assembles everything.
const PRODUCT: &[&str] = &[
    "base",
    "cgroup-plan",
    "api",
    "cri",
    "config",
    "pod-plan",
    "node-plan",
    "host",
    "probes",
    "sources",
    "store",
    "cri-grpc",
    "node-state",
    "pleg",
    "image-pull",
    "kubelet",
    "http-core",
    "audit",
    "server",
    "kubelet-api",
    "kube",
    "cluster",
    "shim",
    "streaming",
    "cni",
    "netprobe",
    "runtime",
    "stats",
    "view",
    "cli",
];

/// A dependency of the tests of every crate: it handles tests that can't run.
pub(super) const ALL_TESTS_USE: &str = "needs";

/// All crates, from the bottom up.
pub(super) const CRATE_RULES: &[CrateRule] = &[
    CrateRule::pure(0, "base", &[]),
    CrateRule::pure(0, "cgroup-plan", &[]),
    CrateRule::pure(0, "tls", &[]),
    CrateRule::pure(0, "yaml", &[]),
    CrateRule::pure(1, "api", &["base", "yaml"]),
    CrateRule::pure(1, "cri", &["base"]),
    CrateRule::pure(1, "oci", &[]),
    CrateRule::pure(1, "config", &["base", "yaml"]),
    CrateRule::pure(2, "pod-plan", &["base", "api", "cri"]),
    CrateRule::pure(2, "node-plan", &["base", "cgroup-plan", "api"]),
    CrateRule::pure(2, "runtime-plan", &["cgroup-plan", "yaml", "cri", "oci"]),
    CrateRule::effects(3, "host", &["base", "cgroup-plan", "oci"]),
    CrateRule::effects(3, "logs", &["base", "host"]),
    CrateRule::effects(3, "sources", &["base", "yaml", "api", "host"]),
    CrateRule::effects(3, "store", &[]),
    CrateRule::effects(3, "volumes", &["base", "api", "host"]),
    CrateRule::effects(3, "kube", &["base", "tls", "yaml"]).tests_with(&["sim-api"]),
    CrateRule::effects(3, "container", &["base", "host", "oci"]).tests_with(&["cgroup-plan"]),
    CrateRule::effects(
        3,
        "shim",
        &["base", "cgroup-plan", "oci", "host", "logs", "container"],
    ),
    CrateRule::effects(3, "files", &["base", "host"]),
    CrateRule::effects(3, "streaming", &["base", "tls", "cri", "host"]),
    CrateRule::effects(3, "images", &["base", "tls", "oci", "host", "store"]),
    CrateRule::effects(3, "netprobe", &["base", "host"]),
    CrateRule::effects(3, "cni", &["base", "host", "store"]),
    CrateRule::effects(
        4,
        "runtime",
        &[
            "base",
            "cgroup-plan",
            "cri",
            "oci",
            "runtime-plan",
            "host",
            "store",
            "shim",
            "streaming",
            "images",
            "cni",
        ],
    )
    .tests_with(&["testbed"]),
    CrateRule::effects(4, "cri-grpc", &["cri"]).tests_with(&["cri-grpc"]),
    CrateRule::effects(
        5,
        "node-state",
        &[
            "base",
            "cgroup-plan",
            "api",
            "cri",
            "pod-plan",
            "node-plan",
            "host",
            "store",
        ],
    )
    .tests_with(&["parity"]),
    CrateRule::effects(
        5,
        "stats",
        &[
            "base",
            "cgroup-plan",
            "api",
            "cri",
            "node-plan",
            "host",
            "node-state",
        ],
    ),
    CrateRule::effects(
        5,
        "pleg",
        &[
            "base",
            "api",
            "cri",
            "pod-plan",
            "host",
            "logs",
            "volumes",
            "node-state",
        ],
    )
    .tests_with(&["sim"]),
    CrateRule::effects(
        5,
        "probes",
        &["base", "tls", "api", "cri", "pod-plan", "node-state"],
    ),
    CrateRule::effects(
        5,
        "image-pull",
        &[
            "base",
            "api",
            "cri",
            "config",
            "pod-plan",
            "host",
            "store",
            "node-state",
        ],
    ),
    CrateRule::effects(
        5,
        "kubelet",
        &[
            "base",
            "cgroup-plan",
            "api",
            "cri",
            "config",
            "pod-plan",
            "node-plan",
            "node-state",
            "pleg",
            "image-pull",
            "host",
            "logs",
            "probes",
            "sources",
            "store",
            "volumes",
        ],
    )
    .tests_with(&["parity", "sim"]),
    CrateRule::effects(5, "http-core", &["streaming"]),
    CrateRule::effects(5, "audit", &["yaml", "http-core"]),
    // `cri` is used by its feature `testing` only.
    CrateRule::effects(5, "server", &["cri", "streaming", "http-core", "audit"]),
    CrateRule::effects(
        5,
        "kubelet-api",
        &["base", "streaming", "http-core", "audit", "server"],
    )
    .tests_with(&["parity", "host"]),
    CrateRule::effects(
        5,
        "cluster",
        &[
            "base",
            "yaml",
            "api",
            "cri",
            "pod-plan",
            "node-plan",
            "host",
            "kube",
            "sources",
            "store",
            "node-state",
            "http-core",
        ],
    )
    .tests_with(&[
        "cgroup-plan",
        "parity",
        "server",
        "sim",
        "sim-api",
        "kubelet",
        "pleg",
        "probes",
        "image-pull",
    ]),
    CrateRule::effects(
        6,
        "view",
        &[
            "base",
            "api",
            "cri",
            "pod-plan",
            "host",
            "logs",
            "netprobe",
            "files",
            "sources",
            "streaming",
            "kube",
            "node-state",
            "pleg",
            "probes",
            "audit",
            "server",
            "cluster",
            "stats",
        ],
    ),
    CrateRule::effects(
        6,
        "cli",
        &[
            "base",
            "yaml",
            "api",
            "cri",
            "config",
            "files",
            "host",
            "streaming",
            "images",
            "netprobe",
            "runtime",
            "cri-grpc",
            "node-state",
            "server",
        ],
    )
    .tests_with(&["cri-grpc"]),
    CrateRule::effects(6, "rubelet", PRODUCT),
    CrateRule::effects(DEV, "needs", &[]),
    CrateRule::effects(DEV, "parity", &["base"]),
    CrateRule::effects(DEV, "sim", &["base", "cri"]),
    // A model that reuses the product's rules finds none of its bugs.
    CrateRule::effects(DEV, "sim-api", &["base", "tls"]).tests_with(&["server"]),
    CrateRule::effects(DEV, "testbed", &["needs", "cri", "cri-grpc", "sim-api"]).tests_with(&[
        "base",
        "host",
        "streaming",
    ]),
    CrateRule::effects(DEV, "chaos-cri", &["base", "yaml", "cri"]).tests_with(&["cri-grpc", "sim"]),
    CrateRule::effects(
        DEV,
        "xtask",
        // `host` for the features that tests of others add.
        &[
            "needs",
            "host",
            "tls",
            "cri",
            "cri-grpc",
            "streaming",
            "testbed",
            "sim-api",
            "chaos-cri",
        ],
    ),
];

/// The rule of the crate with that name.
pub(super) fn rule_of(name: &str) -> Option<&'static CrateRule> {
    CRATE_RULES.iter().find(|rule| rule.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_edge_points_down() {
        for (place, user) in CRATE_RULES.iter().enumerate() {
            for used in user.uses {
                let found = CRATE_RULES.iter().position(|rule| rule.name == *used);
                let found = found.unwrap_or_else(|| panic!("{used} is not a crate"));
                let down = CRATE_RULES[found].layer < user.layer
                    || (CRATE_RULES[found].layer == user.layer && found < place);
                assert!(down, "{} -> {used}", user.name);
            }
        }
    }

    #[test]
    fn nothing_of_the_product_uses_a_test_crate() {
        for user in CRATE_RULES.iter().filter(|rule| rule.layer < DEV) {
            for used in user.uses {
                assert!(
                    rule_of(used).is_some_and(|used| used.layer < DEV),
                    "{} -> {used}",
                    user.name
                );
            }
        }
    }

    #[test]
    fn a_pure_crate_uses_pure_crates_only() {
        for user in CRATE_RULES.iter().filter(|rule| rule.pure) {
            assert!(
                user.uses
                    .iter()
                    .all(|used| rule_of(used).is_some_and(|used| used.pure))
            );
        }
    }
}
