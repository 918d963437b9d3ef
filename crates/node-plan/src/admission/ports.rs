//! Host ports of pods.

use rubelet_api::pod::Pod;

use crate::HostPort;

/// True if another pod has one of the pod's host ports, on the same address or on all addresses.
pub(super) fn conflict(pod: &Pod, running: &[&Pod]) -> bool {
    let taken: Vec<HostPort> = running.iter().flat_map(|pod| host_ports(pod)).collect();
    host_ports(pod).any(|port| taken.iter().any(|other| port.conflicts_with(other)))
}

/// Ports of containers and sidecars. Other init containers have exited when the pod runs.
fn host_ports(pod: &Pod) -> impl Iterator<Item = HostPort> {
    let sidecars = pod.spec.sidecars().map(|(_, container)| container);
    sidecars
        .chain(&pod.spec.containers)
        .flat_map(|container| &container.ports)
        .filter_map(HostPort::of)
}
