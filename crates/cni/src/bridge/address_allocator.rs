//! Allocation of addresses and host ports. In memory only; restored from the records.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
};

use crate::{
    Cidr, NetworkError, NetworkFailure, NetworkRefusal, PortMapping,
    attachment::{Lease, PodRef},
};

use super::{host_ports::HostPorts, pool::AddressPool};

/// The allocator.
#[derive(Debug, Default)]
pub(super) struct AddressAllocator {
    pools: Vec<AddressPool>,
    ports: HostPorts,
    leases: BTreeMap<String, Lease>,
    /// Addresses of interfaces that are still being removed.
    leaving: BTreeSet<IpAddr>,
}

/// Why no lease could be allocated.
#[derive(Debug)]
pub(super) enum LeaseError {
    /// Addresses will be freed soon.
    Pending,
    /// All addresses are in use, or a host port is.
    Failed(NetworkError),
}

impl AddressAllocator {
    /// Restores a recorded lease.
    pub(super) fn restore(&mut self, sandbox: &str, pod: &PodRef, lease: &Lease) {
        // Two records can't have the same port unless they were edited; the first one keeps it.
        let _ = self.ports.take(sandbox, pod, &lease.ports);
        for &address in &lease.addresses {
            self.reserve(address);
        }
        self.leases.insert(sandbox.to_owned(), lease.clone());
    }

    /// Sets the ranges for new leases; `next` gives the number at which each begins.
    pub(super) fn set_ranges(&mut self, ranges: &[Cidr], next: impl Fn(Cidr) -> u32) {
        let same = self
            .pools
            .iter()
            .map(AddressPool::range)
            .eq(ranges.iter().copied());
        if same {
            return;
        }
        self.pools = ranges
            .iter()
            .map(|&range| AddressPool::new(range, next(range)))
            .collect();
        let taken: Vec<IpAddr> = self
            .leases
            .values()
            .flat_map(|lease| lease.addresses.iter().copied())
            .chain(self.leaving.iter().copied())
            .collect();
        for address in taken {
            self.reserve(address);
        }
    }

    /// Keeps an address from being allocated.
    pub(super) fn reserve(&mut self, address: IpAddr) {
        for pool in &mut self.pools {
            pool.reserve(address);
        }
    }

    /// Allocates an address of each range and the pod's host ports.
    pub(super) fn lease(
        &mut self,
        sandbox: &str,
        pod: &PodRef,
        host_interface: String,
        ports: &[PortMapping],
    ) -> Result<Lease, LeaseError> {
        self.ports
            .take(sandbox, pod, ports)
            .map_err(|refusal| LeaseError::Failed(refusal.into()))?;
        let mut lease = Lease {
            addresses: Vec::new(),
            ranges: Vec::new(),
            host_interface,
            ports: ports.to_vec(),
        };
        let mut full = None;
        for pool in &mut self.pools {
            match pool.take() {
                Some(address) => {
                    lease.addresses.push(address);
                    lease.ranges.push(pool.range());
                }
                None => full = Some((pool.range(), pool.taken())),
            }
        }
        let Some((range, taken)) = full else {
            self.leases.insert(sandbox.to_owned(), lease.clone());
            return Ok(lease);
        };
        // All or nothing: what the other ranges gave goes back.
        self.ports.release(sandbox, ports);
        self.free(&lease.addresses);
        if !self.leaving.is_empty() {
            return Err(LeaseError::Pending);
        }
        let failure = NetworkFailure::NoAddress { range, taken };
        Err(LeaseError::Failed(failure.into()))
    }

    /// Updates the host ports of a pod that keeps its addresses.
    pub(super) fn renew(
        &mut self,
        sandbox: &str,
        pod: &PodRef,
        ports: &[PortMapping],
    ) -> Result<Option<Lease>, NetworkRefusal> {
        let Some(lease) = self.leases.get_mut(sandbox) else {
            return Ok(None);
        };
        // All or nothing: the rules of the old ports are in force until the new ones are.
        self.ports.replace(sandbox, pod, &lease.ports, ports)?;
        lease.ports = ports.to_vec();
        Ok(Some(lease.clone()))
    }

    /// Ends a lease: its ports are freed immediately, its addresses by [`Self::free`].
    pub(super) fn end(&mut self, sandbox: &str) -> Option<Lease> {
        let lease = self.leases.remove(sandbox)?;
        self.ports.release(sandbox, &lease.ports);
        self.leaving.extend(lease.addresses.iter().copied());
        Some(lease)
    }

    /// Releases addresses.
    pub(super) fn free(&mut self, addresses: &[IpAddr]) {
        for &address in addresses {
            self.leaving.remove(&address);
            let held = self
                .leases
                .values()
                .any(|lease| lease.addresses.contains(&address));
            if !held {
                for pool in &mut self.pools {
                    pool.release(address);
                }
            }
        }
    }

    pub(super) fn get(&self, sandbox: &str) -> Option<Lease> {
        self.leases.get(sandbox).cloned()
    }

    pub(super) fn leases(&self) -> Vec<Lease> {
        self.leases.values().cloned().collect()
    }

    /// The number at which the next search begins, for each range.
    pub(super) fn next(&self) -> Vec<(Cidr, u32)> {
        self.pools
            .iter()
            .map(|pool| (pool.range(), pool.next()))
            .collect()
    }

    /// All ranges with addresses in use, those for new leases first.
    pub(super) fn ranges(&self) -> Vec<Cidr> {
        let mut ranges: Vec<Cidr> = self.pools.iter().map(AddressPool::range).collect();
        for lease in self.leases.values() {
            for range in &lease.ranges {
                if !ranges.contains(range) {
                    ranges.push(*range);
                }
            }
        }
        ranges
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Protocol;

    fn pod(name: &str) -> PodRef {
        PodRef {
            namespace: "default".to_owned(),
            name: name.to_owned(),
            uid: String::new(),
        }
    }

    fn port(host_port: u16) -> PortMapping {
        PortMapping {
            protocol: Protocol::Tcp,
            container_port: 80,
            host_port,
            host_ip: None,
        }
    }

    #[test]
    fn a_pod_that_cannot_have_other_ports_keeps_its_own() {
        let mut allocator = AddressAllocator::default();
        let mut lease = |sandbox: &str, name: &str, host_port| {
            let lease = allocator.lease(sandbox, &pod(name), String::new(), &[port(host_port)]);
            assert!(lease.is_ok());
        };
        lease("s1", "web", 8080);
        lease("s2", "shop", 8081);
        let refused = allocator.renew("s1", &pod("web"), &[port(8081)]);
        assert!(refused.unwrap_err().to_string().contains("default/shop"));
        assert_eq!(allocator.get("s1").unwrap().ports, [port(8080)]);
        let third = allocator.lease("s3", &pod("third"), String::new(), &[port(8080)]);
        assert!(matches!(third, Err(LeaseError::Failed(_))));
        let renewed = allocator.renew("s1", &pod("web"), &[port(8082)]).unwrap();
        assert_eq!(renewed.unwrap().ports, [port(8082)]);
        let third = allocator.lease("s3", &pod("third"), String::new(), &[port(8080)]);
        assert!(third.is_ok());
    }
}
