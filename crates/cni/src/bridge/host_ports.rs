//! Allocation of host ports.

use std::{collections::BTreeMap, net::IpAddr};

use crate::{NetworkRefusal, PortMapping, Protocol, attachment::PodRef};

/// The host ports in use by pods.
#[derive(Debug, Default)]
pub(super) struct HostPorts {
    holders: BTreeMap<(Protocol, u16), Vec<Holder>>,
}

#[derive(Debug)]
struct Holder {
    host_ip: Option<IpAddr>,
    sandbox: String,
    pod: PodRef,
}

impl HostPorts {
    /// Allocates ports for a pod, all or none. Ports that it already has do not conflict.
    ///
    /// # Errors
    /// Another pod has a port; the message names both pods.
    pub(super) fn take(
        &mut self,
        sandbox: &str,
        pod: &PodRef,
        ports: &[PortMapping],
    ) -> Result<(), NetworkRefusal> {
        self.replace(sandbox, pod, ports, ports)
    }

    /// Allocates other ports for a pod in place of the `old` ones.
    ///
    /// # Errors
    /// As for [`Self::take`]; then it keeps the old ones.
    pub(super) fn replace(
        &mut self,
        sandbox: &str,
        pod: &PodRef,
        old: &[PortMapping],
        ports: &[PortMapping],
    ) -> Result<(), NetworkRefusal> {
        for (number, port) in ports.iter().enumerate() {
            let holders = self.holders.get(&(port.protocol, port.host_port));
            let clash = holders
                .into_iter()
                .flatten()
                .find(|holder| holder.sandbox != sandbox && meet(holder.host_ip, port.host_ip));
            if let Some(holder) = clash {
                return Err(NetworkRefusal::HostPortInUse {
                    port: show(port),
                    pod: pod.to_string(),
                    holder: holder.pod.to_string(),
                    sandbox: holder.sandbox.clone(),
                });
            }
            let twice = ports[..number].iter().find(|other| {
                (other.protocol, other.host_port) == (port.protocol, port.host_port)
                    && meet(other.host_ip, port.host_ip)
                    && other.container_port != port.container_port
            });
            if let Some(other) = twice {
                return Err(NetworkRefusal::HostPortTwice {
                    pod: pod.to_string(),
                    port: show(port),
                    one: other.container_port,
                    other: port.container_port,
                });
            }
        }
        self.release(sandbox, old);
        for port in ports {
            self.holders
                .entry((port.protocol, port.host_port))
                .or_default()
                .push(Holder {
                    host_ip: port.host_ip,
                    sandbox: sandbox.to_owned(),
                    pod: pod.clone(),
                });
        }
        Ok(())
    }

    /// Releases a pod's ports.
    pub(super) fn release(&mut self, sandbox: &str, ports: &[PortMapping]) {
        for port in ports {
            let key = (port.protocol, port.host_port);
            if let Some(holders) = self.holders.get_mut(&key) {
                holders.retain(|holder| holder.sandbox != sandbox);
                if holders.is_empty() {
                    self.holders.remove(&key);
                }
            }
        }
    }
}

/// Whether two host IPs overlap: an unspecified address is every address, as in the scheduler.
fn meet(one: Option<IpAddr>, other: Option<IpAddr>) -> bool {
    match (named(one), named(other)) {
        (Some(one), Some(other)) => one == other,
        _ => true,
    }
}

/// The address, unless it is unspecified.
pub(super) fn named(address: Option<IpAddr>) -> Option<IpAddr> {
    address.filter(|address| !address.is_unspecified())
}

fn show(port: &PortMapping) -> String {
    match port.host_ip {
        Some(ip @ IpAddr::V6(_)) => format!("[{ip}]:{}/{}", port.host_port, port.protocol),
        Some(ip) => format!("{ip}:{}/{}", port.host_port, port.protocol),
        None => format!("{}/{}", port.host_port, port.protocol),
    }
}

#[cfg(test)]
mod tests;
