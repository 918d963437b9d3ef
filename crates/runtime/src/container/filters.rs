//! A cache of compiled default seccomp filters, by the capabilities that they depend on. Nearly all
//! containers of a node use the same.

use std::{collections::BTreeMap, sync::Arc};

use parking_lot::Mutex;
use rubelet_runtime_plan::{
    capability::CapSet,
    seccomp::{self, Arch, Socketcall},
};

use crate::error::Result;

/// Filters in the cache, of some ten KiB each.
const CAPACITY: usize = 16;

/// The inputs of a filter: the capabilities that allow system calls, and `socketcall`.
type FilterKey = (u64, Socketcall);

/// Compiled filters by [`FilterKey`].
#[derive(Debug, Default)]
pub(crate) struct DefaultFilters {
    known: Mutex<BTreeMap<FilterKey, Arc<[u8]>>>,
}

impl DefaultFilters {
    /// The filter of a container with that bounding set and that AppArmor profile, for the machine's own architecture.
    pub(crate) fn of(
        &self,
        capabilities: CapSet,
        socketcall: Socketcall,
        arch: Arch,
    ) -> Result<Arc<[u8]>> {
        let deciding = seccomp::deciding(capabilities);
        let key = (deciding.bits(), socketcall);
        if let Some(known) = self.known.lock().get(&key) {
            return Ok(Arc::clone(known));
        }
        let profile = seccomp::runtime_default(&deciding, socketcall, arch);
        let program: Arc<[u8]> = seccomp::compile(&profile, arch)?.into();
        let mut known = self.known.lock();
        if known.len() >= CAPACITY {
            known.pop_first();
        }
        known.insert(key, Arc::clone(&program));
        Ok(program)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_is_compiled_once_for_containers_that_get_the_same() {
        let filters = DefaultFilters::default();
        let of = |names: &[&str]| {
            let set = CapSet::of(names.iter().copied());
            filters.of(set, Socketcall::Absent, Arch::X86_64).unwrap()
        };
        let plain = of(&["CHOWN", "KILL"]);
        assert!(Arc::ptr_eq(&plain, &of(&["NET_RAW"])));
        let other = of(&["SYS_ADMIN", "CHOWN"]);
        assert_ne!(plain, other);
        let fresh =
            seccomp::runtime_default(&CapSet::of(["NET_RAW"]), Socketcall::Absent, Arch::X86_64);
        let with_own_profile = filters
            .of(CapSet::of(["CHOWN"]), Socketcall::Allowed, Arch::X86_64)
            .unwrap();
        assert_ne!(plain, with_own_profile);
        assert_eq!(*plain, *seccomp::compile(&fresh, Arch::X86_64).unwrap());
    }

    #[test]
    fn many_different_containers_do_not_make_it_grow() {
        let filters = DefaultFilters::default();
        let deciding = seccomp::deciding(CapSet::ALL).names();
        for bits in 0..32_usize {
            let names = deciding.iter().enumerate();
            let names = names.filter(|(at, _)| bits & (1 << at) != 0);
            let set = CapSet::of(names.map(|(_, name)| name.as_str()));
            filters.of(set, Socketcall::Absent, Arch::X86_64).unwrap();
        }
        assert_eq!(filters.known.lock().len(), CAPACITY);
    }
}
