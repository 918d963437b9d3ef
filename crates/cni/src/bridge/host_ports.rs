//! Which pod has which port of the host.

use std::{collections::BTreeMap, net::IpAddr};

use crate::{PortMapping, Protocol, attachment::PodRef};

/// The ports of the host that lead to pods.
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
    /// Takes ports for a pod, all or none. What it has already is no clash.
    ///
    /// # Errors
    /// A sentence with the names of both pods that want one port.
    pub(super) fn take(
        &mut self,
        sandbox: &str,
        pod: &PodRef,
        ports: &[PortMapping],
    ) -> Result<(), String> {
        for (number, port) in ports.iter().enumerate() {
            let holders = self.holders.get(&(port.protocol, port.host_port));
            let clash = holders
                .into_iter()
                .flatten()
                .find(|holder| holder.sandbox != sandbox && meet(holder.host_ip, port.host_ip));
            if let Some(holder) = clash {
                return Err(format!(
                    "host port {} for pod {pod} is taken by pod {} ({}): give one of them another hostPort",
                    show(port),
                    holder.pod,
                    holder.sandbox
                ));
            }
            let twice = ports[..number].iter().find(|other| {
                (other.protocol, other.host_port) == (port.protocol, port.host_port)
                    && meet(other.host_ip, port.host_ip)
                    && other.container_port != port.container_port
            });
            if let Some(other) = twice {
                return Err(format!(
                    "pod {pod} wants host port {} for its ports {} and {}: give one of them another hostPort",
                    show(port),
                    other.container_port,
                    port.container_port
                ));
            }
        }
        self.release(sandbox, ports);
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

    /// Gives a pod's ports back.
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

/// Whether a packet can be meant for both: an unspecified address is every address, as the
/// scheduler sees it.
fn meet(one: Option<IpAddr>, other: Option<IpAddr>) -> bool {
    match (named(one), named(other)) {
        (Some(one), Some(other)) => one == other,
        _ => true,
    }
}

/// The address, unless it stands for all of them.
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
mod tests {
    use super::*;

    fn pod(name: &str) -> PodRef {
        PodRef {
            namespace: "default".to_owned(),
            name: name.to_owned(),
            uid: String::new(),
        }
    }

    fn port(host_ip: &str, host_port: u16, protocol: Protocol) -> PortMapping {
        PortMapping {
            protocol,
            container_port: 80,
            host_port,
            host_ip: host_ip.parse().ok(),
        }
    }

    #[test]
    fn a_clash_names_both_pods() {
        let mut ports = HostPorts::default();
        let web = [port("", 8080, Protocol::Tcp)];
        ports.take("s1", &pod("web"), &web).unwrap();
        let error = ports.take("s2", &pod("shop"), &web).unwrap_err();
        assert!(
            error.contains("default/web") && error.contains("default/shop"),
            "{error}"
        );
        assert!(error.contains("8080/tcp"), "{error}");
        ports.release("s1", &web);
        ports.take("s2", &pod("shop"), &web).unwrap();
    }

    #[test]
    fn only_the_same_protocol_and_address_clash() {
        let mut ports = HostPorts::default();
        ports
            .take("s1", &pod("a"), &[port("192.0.2.1", 53, Protocol::Udp)])
            .unwrap();
        for free in [
            port("192.0.2.1", 53, Protocol::Tcp),
            port("192.0.2.2", 53, Protocol::Udp),
            port("fd00::1", 53, Protocol::Udp),
        ] {
            ports
                .take("s2", &pod("b"), std::slice::from_ref(&free))
                .unwrap();
            ports.release("s2", &[free]);
        }
        for taken in [
            port("192.0.2.1", 53, Protocol::Udp),
            port("", 53, Protocol::Udp),
            port("0.0.0.0", 53, Protocol::Udp),
        ] {
            ports.take("s2", &pod("b"), &[taken]).unwrap_err();
        }
    }

    #[test]
    fn a_refused_pod_takes_nothing_and_the_same_pod_may_ask_again() {
        let mut ports = HostPorts::default();
        ports
            .take("s1", &pod("a"), &[port("", 80, Protocol::Tcp)])
            .unwrap();
        ports
            .take("s1", &pod("a"), &[port("", 80, Protocol::Tcp)])
            .unwrap();
        let both = [port("", 81, Protocol::Tcp), port("", 80, Protocol::Tcp)];
        ports.take("s2", &pod("b"), &both).unwrap_err();
        ports.take("s3", &pod("c"), &both[..1]).unwrap();
        let mut twice = [port("", 90, Protocol::Tcp), port("", 90, Protocol::Tcp)];
        ports.take("s4", &pod("d"), &twice).unwrap();
        twice[0].container_port = 81;
        ports.take("s4", &pod("d"), &twice).unwrap_err();
    }
}
