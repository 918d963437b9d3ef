//! Which pod holds which ports of the host. A pod whose port another one still holds waits for its
//! release instead of failing: it begins within milliseconds of it, and its back-off does not grow.
//!
//! The runtime decides in the end. Here is only what this agent's pods hold, whatever the runtime.

use std::{
    collections::BTreeMap,
    fmt,
    net::IpAddr,
    sync::{Arc, Weak},
};

use parking_lot::Mutex;
use rubelet_api::{network::Protocol, pod::Pod};
use rubelet_base::{PodName, PodUid};
use tokio::sync::watch;

/// A port of the host.
#[derive(Debug, Clone, PartialEq, Eq)]
struct HostPort {
    number: u16,
    protocol: Protocol,
    /// `None`: every address.
    address: Option<IpAddr>,
}

/// A port that another pod holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PortHeld {
    port: HostPort,
    by: PodName,
}

impl fmt::Display for PortHeld {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { port, by } = self;
        let protocol = match port.protocol {
            Protocol::Tcp => "TCP",
            Protocol::Udp => "UDP",
            Protocol::Sctp => "SCTP",
        };
        write!(
            f,
            "host port {}/{protocol} is held by pod {by}",
            port.number
        )?;
        write!(f, "; this pod starts when that one has released it")
    }
}

/// The ports that pods hold. Clones share them.
#[derive(Debug, Clone)]
pub(crate) struct HostPorts(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    holders: Mutex<BTreeMap<PodUid, (PodName, Vec<HostPort>)>>,
    /// Counts releases.
    released: watch::Sender<u64>,
}

/// The ports of one pod, released when this is dropped.
#[derive(Debug)]
pub(crate) struct HeldPorts {
    shared: Weak<Shared>,
    uid: PodUid,
}

impl Drop for HeldPorts {
    fn drop(&mut self) {
        if let Some(shared) = self.shared.upgrade()
            && shared.holders.lock().remove(&self.uid).is_some()
        {
            shared.released.send_modify(|count| *count += 1);
        }
    }
}

impl HostPorts {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Shared {
            holders: Mutex::default(),
            released: watch::Sender::new(0),
        }))
    }

    /// Takes all ports of a pod; `None` if it has none.
    ///
    /// # Errors
    /// Another pod holds one of them.
    pub(crate) fn take(&self, pod: &Pod) -> Result<Option<HeldPorts>, PortHeld> {
        let wanted = ports_of(pod);
        let mut holders = self.0.holders.lock();
        let mut others = holders.iter().filter(|(uid, _)| **uid != pod.uid);
        let held = others.find_map(|(_, (by, ports))| {
            let port = wanted
                .iter()
                .find(|port| ports.iter().any(|one| port.meets(one)))?;
            Some(PortHeld {
                port: port.clone(),
                by: by.clone(),
            })
        });
        match held {
            Some(held) => Err(held),
            None => Ok(self.insert(&mut holders, pod, wanted)),
        }
    }

    /// Notes the ports of a pod that has a sandbox already; `None` if it has none.
    pub(crate) fn adopt(&self, pod: &Pod) -> Option<HeldPorts> {
        self.insert(&mut self.0.holders.lock(), pod, ports_of(pod))
    }

    /// Follows releases; level-triggered.
    pub(crate) fn releases(&self) -> watch::Receiver<u64> {
        self.0.released.subscribe()
    }

    fn insert(
        &self,
        holders: &mut BTreeMap<PodUid, (PodName, Vec<HostPort>)>,
        pod: &Pod,
        ports: Vec<HostPort>,
    ) -> Option<HeldPorts> {
        if ports.is_empty() {
            return None;
        }
        holders.insert(pod.uid.clone(), (pod.name.clone(), ports));
        Some(HeldPorts {
            shared: Arc::downgrade(&self.0),
            uid: pod.uid.clone(),
        })
    }
}

impl HostPort {
    /// Whether one of them keeps the other away, as in the scheduler: an unspecified address is
    /// every address.
    fn meets(&self, other: &Self) -> bool {
        let addresses = match (self.address, other.address) {
            (Some(one), Some(other)) => one == other,
            _ => true,
        };
        addresses && (self.number, self.protocol) == (other.number, other.protocol)
    }
}

/// The ports that the runtime maps for a pod. On the host's network it maps none.
fn ports_of(pod: &Pod) -> Vec<HostPort> {
    if pod.spec.host_network {
        return Vec::new();
    }
    let ports = pod.spec.all_containers().flat_map(|one| &one.ports);
    ports
        .filter_map(|port| {
            let address = port.host_ip.as_deref().and_then(|text| text.parse().ok());
            Some(HostPort {
                number: port.host_port?,
                protocol: port.protocol,
                address: address.filter(|address: &IpAddr| !address.is_unspecified()),
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn port(number: u16, protocol: Protocol, address: Option<&str>) -> HostPort {
        HostPort {
            number,
            protocol,
            address: address.map(|text| text.parse().unwrap()),
        }
    }

    #[test]
    fn ports_meet_where_the_scheduler_says_so() {
        let tcp = |number, address| port(number, Protocol::Tcp, address);
        assert!(tcp(80, None).meets(&tcp(80, Some("127.0.0.1"))));
        assert!(tcp(80, Some("127.0.0.1")).meets(&tcp(80, Some("127.0.0.1"))));
        assert!(!tcp(80, Some("127.0.0.2")).meets(&tcp(80, Some("127.0.0.1"))));
        assert!(!tcp(80, None).meets(&tcp(81, None)));
        assert!(!tcp(80, None).meets(&port(80, Protocol::Udp, None)));
    }

    #[test]
    fn it_is_said_what_is_held_and_by_whom() {
        let held = PortHeld {
            port: port(80, Protocol::Tcp, None),
            by: PodName {
                namespace: "default".into(),
                name: "old".into(),
            },
        };
        assert_eq!(
            held.to_string(),
            "host port 80/TCP is held by pod default/old; this pod starts when that one has released it"
        );
    }
}
