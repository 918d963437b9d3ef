//! Who has which address and which port of the host. In memory only; made anew from the records.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
};

use crate::{
    Cidr, NetworkError, PortMapping,
    attachment::{Lease, PodRef},
};

use super::{host_ports::HostPorts, pool::Pool};

/// The book.
#[derive(Debug, Default)]
pub(super) struct Book {
    pools: Vec<Pool>,
    ports: HostPorts,
    leases: BTreeMap<String, Lease>,
    /// Addresses whose interface is still being removed.
    leaving: BTreeSet<IpAddr>,
}

/// Why there is no lease.
#[derive(Debug)]
pub(super) enum NoLease {
    /// Addresses will be free in a moment.
    Later,
    /// There is none to be had.
    Refused(NetworkError),
}

impl Book {
    /// Writes down what a record tells.
    pub(super) fn restore(&mut self, sandbox: &str, pod: &PodRef, lease: &Lease) {
        // Records of two pods with one port can't be written; if they are there all the same, the
        // first one keeps it.
        let _ = self.ports.take(sandbox, pod, &lease.ports);
        for &address in &lease.addresses {
            self.reserve(address);
        }
        self.leases.insert(sandbox.to_owned(), lease.clone());
    }

    /// Sets the ranges for new leases; `next` tells where to begin in each.
    pub(super) fn set_ranges(&mut self, ranges: &[Cidr], next: impl Fn(Cidr) -> u32) {
        let same = self
            .pools
            .iter()
            .map(Pool::range)
            .eq(ranges.iter().copied());
        if same {
            return;
        }
        self.pools = ranges
            .iter()
            .map(|&range| Pool::new(range, next(range)))
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

    /// Keeps an address from being given out.
    pub(super) fn reserve(&mut self, address: IpAddr) {
        for pool in &mut self.pools {
            pool.reserve(address);
        }
    }

    /// Gives a pod an address of each range and the ports it wants.
    pub(super) fn lease(
        &mut self,
        sandbox: &str,
        pod: &PodRef,
        host_interface: String,
        ports: &[PortMapping],
    ) -> Result<Lease, NoLease> {
        self.ports
            .take(sandbox, pod, ports)
            .map_err(|why| NoLease::Refused(NetworkError::Refused(why)))?;
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
        self.ports.release(sandbox, ports);
        self.free(&lease.addresses);
        if !self.leaving.is_empty() {
            return Err(NoLease::Later);
        }
        Err(NoLease::Refused(NetworkError::Failed(format!(
            "no address is free in {range}: all {taken} belong to pods; give this node a larger range, or fewer pods"
        ))))
    }

    /// Takes the ports for a pod that keeps its addresses.
    pub(super) fn renew(
        &mut self,
        sandbox: &str,
        pod: &PodRef,
        ports: &[PortMapping],
    ) -> Result<Option<Lease>, String> {
        let Some(lease) = self.leases.get_mut(sandbox) else {
            return Ok(None);
        };
        self.ports.release(sandbox, &lease.ports);
        self.ports.take(sandbox, pod, ports)?;
        lease.ports = ports.to_vec();
        Ok(Some(lease.clone()))
    }

    /// Ends a lease: its ports are free at once, its addresses when [`Self::free`] is told.
    pub(super) fn end(&mut self, sandbox: &str) -> Option<Lease> {
        let lease = self.leases.remove(sandbox)?;
        self.ports.release(sandbox, &lease.ports);
        self.leaving.extend(lease.addresses.iter().copied());
        Some(lease)
    }

    /// Gives addresses back.
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

    /// Where the search for an address begins next in each range.
    pub(super) fn next(&self) -> Vec<(Cidr, u32)> {
        self.pools
            .iter()
            .map(|pool| (pool.range(), pool.next()))
            .collect()
    }

    /// All ranges that addresses are in use of: those for new leases first.
    pub(super) fn ranges(&self) -> Vec<Cidr> {
        let mut ranges: Vec<Cidr> = self.pools.iter().map(Pool::range).collect();
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
