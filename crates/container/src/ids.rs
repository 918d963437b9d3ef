//! IDs of users and groups, inside of a user namespace and on the host.

use rubelet_oci::IdMapping;
use rustix::fs::{Gid, Uid};

/// The IDs of a container's user namespace; empty in the host's.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HostIds<'a> {
    uids: &'a [IdMapping],
    gids: &'a [IdMapping],
}

impl<'a> HostIds<'a> {
    /// The IDs of a container with these mappings; without mappings they are the host's.
    pub(crate) fn new(uids: &'a [IdMapping], gids: &'a [IdMapping]) -> Self {
        Self { uids, gids }
    }

    /// The host's ID of a user, if it has one.
    pub(crate) fn uid(&self, id: u32) -> Option<Uid> {
        map(self.uids, id).map(Uid::from_raw)
    }

    /// The host's ID of a group, if it has one.
    pub(crate) fn gid(&self, id: u32) -> Option<Gid> {
        map(self.gids, id).map(Gid::from_raw)
    }
}

fn map(mappings: &[IdMapping], id: u32) -> Option<u32> {
    if mappings.is_empty() {
        return Some(id);
    }
    mappings.iter().find_map(|range| {
        let place = id.checked_sub(range.container_id)?;
        (place < range.size).then(|| range.host_id.checked_add(place))?
    })
}

/// The text that the kernel takes in `uid_map` and `gid_map`.
pub(crate) fn kernel_text(mappings: &[IdMapping]) -> String {
    mappings
        .iter()
        .map(|range| format!("{} {} {}\n", range.container_id, range.host_id, range.size))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_found_in_their_range() {
        let ranges = [
            IdMapping {
                container_id: 0,
                host_id: 100_000,
                size: 10,
            },
            IdMapping {
                container_id: 1000,
                host_id: 500_000,
                size: 1,
            },
        ];
        assert_eq!(map(&ranges, 0), Some(100_000));
        assert_eq!(map(&ranges, 9), Some(100_009));
        assert_eq!(map(&ranges, 10), None);
        assert_eq!(map(&ranges, 1000), Some(500_000));
        assert_eq!(map(&[], 7), Some(7));
    }
}
