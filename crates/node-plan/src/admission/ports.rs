//! Whether the host ports that a pod requests are free.

use rubelet_api::{network::Protocol, pod::Pod};

/// A port of the host: address, protocol, number.
type HostPort<'a> = (&'a str, Protocol, u16);

const EVERY_ADDRESS: &str = "0.0.0.0";

/// Whether another pod has one of the ports that this one requests, on the same address or on all.
pub(super) fn conflict(pod: &Pod, running: &[&Pod]) -> bool {
    let taken: Vec<HostPort<'_>> = running.iter().flat_map(|pod| host_ports(pod)).collect();
    host_ports(pod).any(|(ip, protocol, port)| {
        taken.iter().any(|&(other, other_protocol, other_port)| {
            let same_address = ip == other || [ip, other].contains(&EVERY_ADDRESS);
            same_address && protocol == other_protocol && port == other_port
        })
    })
}

/// Ports of containers and sidecars; init containers have released theirs when the pod runs.
fn host_ports(pod: &Pod) -> impl Iterator<Item = HostPort<'_>> {
    let sidecars = pod.spec.sidecars().map(|(_, container)| container);
    sidecars
        .chain(&pod.spec.containers)
        .flat_map(|container| &container.ports)
        .filter_map(|port| {
            let ip = port.host_ip.as_deref().filter(|ip| !ip.is_empty());
            let number = port.host_port.filter(|number| *number > 0)?;
            Some((ip.unwrap_or(EVERY_ADDRESS), port.protocol, number))
        })
}
