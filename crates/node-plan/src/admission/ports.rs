//! Whether the host ports that a pod requests are free.

use rubelet_api::pod::Pod;

use crate::HostPort;

/// Whether another pod has one of the ports that this one requests, on the same address or on all.
pub(super) fn conflict(pod: &Pod, running: &[&Pod]) -> bool {
    let taken: Vec<HostPort> = running.iter().flat_map(|pod| host_ports(pod)).collect();
    host_ports(pod).any(|port| taken.iter().any(|other| port.conflicts_with(other)))
}

/// Ports of containers and sidecars; init containers have released theirs when the pod runs.
fn host_ports(pod: &Pod) -> impl Iterator<Item = HostPort> {
    let sidecars = pod.spec.sidecars().map(|(_, container)| container);
    sidecars
        .chain(&pod.spec.containers)
        .flat_map(|container| &container.ports)
        .filter_map(HostPort::of)
}
