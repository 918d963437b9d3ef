//! The crates, their layers, and which crate may use which. A new edge is a decision: it is made
//! here, in the same commit as the edge itself.

/// One crate of the workspace. Names are without the prefix `rubelet-`.
pub(super) struct Room {
    /// The name.
    pub(super) name: &'static str,
    /// The layer of the design. Edges point down: to a lower layer, or inside of a layer to a crate
    /// that stands higher up in the table.
    pub(super) layer: u8,
    /// Whether it is pure: no clock, file, socket, process or async runtime.
    pub(super) pure: bool,
    /// What it may use.
    pub(super) uses: &'static [&'static str],
    /// What its tests may use besides that.
    pub(super) tests_use: &'static [&'static str],
}

impl Room {
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

/// The layer of what is never part of the product.
const DEV: u8 = 9;

/// What the binary may use: it puts everything together.
const PRODUCT: &[&str] = &[
    "base",
    "yaml",
    "api",
    "cri",
    "config",
    "pod-plan",
    "node-plan",
    "host",
    "logs",
    "probes",
    "sources",
    "store",
    "volumes",
    "cri-grpc",
    "kubelet",
    "server",
    "kube",
    "cluster",
    "oci",
    "shim",
    "images",
    "cni",
    "runtime",
];

/// What the tests of every crate may use: it says what becomes of a test that can't run.
pub(super) const ALL_TESTS_USE: &str = "needs";

/// All crates, from the bottom up.
pub(super) const ROOMS: &[Room] = &[
    Room::pure(0, "base", &[]),
    Room::pure(0, "yaml", &["base"]),
    Room::pure(1, "api", &["base", "yaml"]),
    Room::pure(1, "cri", &["base"]),
    Room::pure(1, "oci", &[]),
    Room::pure(1, "config", &["base", "yaml"]),
    Room::pure(2, "pod-plan", &["base", "api", "cri"]),
    Room::pure(2, "node-plan", &["base", "api"]),
    Room::pure(2, "runtime-plan", &["base", "yaml", "cri", "oci"]),
    Room::effects(3, "host", &["base", "oci"]),
    Room::effects(3, "logs", &["base", "host"]),
    Room::effects(3, "probes", &["base", "api"]),
    Room::effects(3, "sources", &["base", "yaml", "api", "host"]),
    Room::effects(3, "store", &["base"]),
    Room::effects(3, "volumes", &["base", "api", "host"]),
    Room::effects(3, "kube", &["base", "yaml"]).tests_with(&["sim-api"]),
    Room::effects(3, "container", &["base", "host", "oci"]),
    Room::effects(3, "shim", &["base", "oci", "host", "logs", "container"]),
    Room::effects(3, "images", &["base", "oci", "host", "store"]),
    Room::effects(3, "cni", &["base", "host", "store"]),
    Room::effects(
        4,
        "runtime",
        &[
            "base",
            "cri",
            "oci",
            "runtime-plan",
            "host",
            "store",
            "shim",
            "images",
            "cni",
        ],
    )
    .tests_with(&["testbed"]),
    Room::effects(4, "cri-grpc", &["base", "cri"]).tests_with(&["cri-grpc"]),
    Room::effects(
        5,
        "kubelet",
        &[
            "base",
            "api",
            "cri",
            "config",
            "pod-plan",
            "node-plan",
            "host",
            "logs",
            "probes",
            "sources",
            "store",
            "volumes",
        ],
    )
    .tests_with(&["sim"]),
    Room::effects(5, "server", &["base", "yaml"]),
    Room::effects(
        5,
        "cluster",
        &[
            "base",
            "yaml",
            "api",
            "cri",
            "config",
            "pod-plan",
            "node-plan",
            "host",
            "kube",
            "sources",
            "store",
            "kubelet",
            "server",
        ],
    )
    .tests_with(&["sim", "sim-api"]),
    Room::effects(6, "rubelet", PRODUCT).tests_with(&["sim"]),
    Room::effects(DEV, "needs", &[]),
    Room::effects(DEV, "sim", &["base", "cri"]),
    // A model that borrows the product's rules finds none of its mistakes.
    Room::effects(DEV, "sim-api", &["base"]).tests_with(&["server"]),
    Room::effects(DEV, "testbed", &["cri", "cri-grpc", "sim-api"]),
    Room::effects(DEV, "chaos-cri", &["base", "yaml", "cri"]).tests_with(&["cri-grpc", "sim"]),
    Room::effects(DEV, "xtask", &["needs", "cri", "testbed", "chaos-cri"]),
];

/// The room of that name.
pub(super) fn room(name: &str) -> Option<&'static Room> {
    ROOMS.iter().find(|room| room.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_edge_points_down() {
        for (place, user) in ROOMS.iter().enumerate() {
            for used in user.uses {
                let found = ROOMS.iter().position(|room| room.name == *used);
                let found = found.unwrap_or_else(|| panic!("{used} is no crate"));
                let down = ROOMS[found].layer < user.layer
                    || (ROOMS[found].layer == user.layer && found < place);
                assert!(down, "{} -> {used}", user.name);
            }
        }
    }

    #[test]
    fn nothing_of_the_product_uses_a_test_crate() {
        for user in ROOMS.iter().filter(|room| room.layer < DEV) {
            for used in user.uses {
                assert!(
                    room(used).is_some_and(|used| used.layer < DEV),
                    "{} -> {used}",
                    user.name
                );
            }
        }
    }

    #[test]
    fn a_pure_crate_uses_pure_crates_only() {
        for user in ROOMS.iter().filter(|room| room.pure) {
            assert!(
                user.uses
                    .iter()
                    .all(|used| room(used).is_some_and(|used| used.pure))
            );
        }
    }
}
