//! Facts about the machine as the node object shows them.

use std::path::Path;

use rubelet_host::{Machine, identity};
use rubelet_node_plan::node_status::NodeFacts;

/// The facts of a machine whose files are below `root`, which is `/` except in tests. Blocks.
#[must_use]
pub fn node_facts(machine: &Machine, root: &Path, kubelet_version: &str) -> NodeFacts {
    let hugepages = machine.hugepages.iter();
    NodeFacts {
        cpus: machine.cpus,
        memory: machine.memory,
        swap: machine.swap,
        hugepages: hugepages
            .map(|pool| (pool.page_size, pool.page_size.saturating_mul(pool.pages)))
            .collect(),
        machine_id: machine.machine_id.clone().unwrap_or_default().into(),
        system_uuid: identity::system_uuid(root).unwrap_or_default().into(),
        boot_id: machine.boot_id.as_str().into(),
        kernel_version: machine.kernel_version.as_str().into(),
        os_image: identity::os_image(root).into(),
        os: std::env::consts::OS.into(),
        architecture: go_architecture(std::env::consts::ARCH).into(),
        kubelet_version: kubelet_version.into(),
    }
}

/// Go's name of an architecture, which Kubernetes uses.
fn go_architecture(name: &str) -> &str {
    match name {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        "x86" => "386",
        "powerpc64" => "ppc64le",
        other => other,
    }
}
