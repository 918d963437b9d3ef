//! Address pool of one range, allocated round-robin so that an address is reused as late as
//! possible.

use std::{collections::BTreeSet, net::IpAddr};

use crate::Cidr;

/// The addresses of one range.
#[derive(Debug)]
pub(super) struct AddressPool {
    range: Cidr,
    next: u32,
    taken: BTreeSet<u32>,
}

impl AddressPool {
    /// A pool whose search for a free address begins at number `next`.
    pub(super) fn new(range: Cidr, next: u32) -> Self {
        Self {
            range,
            next: next.checked_rem(range.capacity()).unwrap_or(0),
            taken: BTreeSet::new(),
        }
    }

    pub(super) fn range(&self) -> Cidr {
        self.range
    }

    /// The number at which the next search begins.
    pub(super) fn next(&self) -> u32 {
        self.next
    }

    /// Allocates the next free address; `None` if all are in use.
    pub(super) fn take(&mut self) -> Option<IpAddr> {
        let room = self.range.capacity();
        let number = self
            .free(self.next, room)
            .or_else(|| self.free(0, self.next))?;
        self.taken.insert(number);
        self.next = (number + 1) % room;
        Some(self.range.pod(number))
    }

    /// The first free number from `from` to before `end`.
    fn free(&self, from: u32, end: u32) -> Option<u32> {
        let mut candidate = from;
        for &taken in self.taken.range(from..end) {
            if taken != candidate {
                break;
            }
            candidate += 1;
        }
        (candidate < end).then_some(candidate)
    }

    /// Marks an address as used; ignores addresses of other ranges.
    pub(super) fn reserve(&mut self, address: IpAddr) {
        self.taken.extend(self.range.number(address));
    }

    /// Releases an address.
    pub(super) fn release(&mut self, address: IpAddr) {
        if let Some(number) = self.range.number(address) {
            self.taken.remove(&number);
        }
    }

    /// Number of addresses in use.
    pub(super) fn taken(&self) -> usize {
        self.taken.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool(range: &str) -> AddressPool {
        AddressPool::new(range.parse().unwrap(), 0)
    }

    fn take(pool: &mut AddressPool) -> String {
        pool.take().map_or_else(String::new, |ip| ip.to_string())
    }

    #[test]
    fn an_address_comes_again_only_after_all_others() {
        let mut pool = pool("192.0.2.0/29");
        let first = pool.take().unwrap();
        pool.release(first);
        let later: Vec<String> = (0..4).map(|_| take(&mut pool)).collect();
        assert_eq!(later, ["192.0.2.3", "192.0.2.4", "192.0.2.5", "192.0.2.6"]);
        assert_eq!(take(&mut pool), "192.0.2.2");
        assert_eq!(pool.take(), None);
        pool.release("192.0.2.5".parse().unwrap());
        assert_eq!(take(&mut pool), "192.0.2.5");
        assert_eq!(pool.take(), None);
        assert_eq!(pool.taken(), 5);
    }

    #[test]
    fn reserved_addresses_are_stepped_over() {
        let mut pool = pool("fd00::/64");
        for reserved in ["fd00::2", "fd00::3", "fd00::5", "192.0.2.9"] {
            pool.reserve(reserved.parse().unwrap());
        }
        assert_eq!(take(&mut pool), "fd00::4");
        assert_eq!(take(&mut pool), "fd00::6");
    }

    #[test]
    fn a_range_without_room_has_no_address() {
        assert_eq!(pool("192.0.2.0/31").take(), None);
        assert_eq!(
            AddressPool::new("192.0.2.0/31".parse().unwrap(), 7).take(),
            None
        );
    }
}
