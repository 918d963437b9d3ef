//! Tests of `node_allocatable`.

use super::*;

const GIB: u64 = 1 << 30;
const HUGE: Bytes = 2 << 20;

fn texts(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    let pairs = pairs.iter();
    pairs
        .map(|&(key, value)| (key.to_owned(), value.to_owned()))
        .collect()
}

#[test]
fn pods_have_what_is_not_reserved_if_that_is_enforced() {
    let capacity = NodeAmounts {
        cpu: 4000,
        memory: 8 * GIB,
        hugepages: BTreeMap::from([(HUGE, GIB)]),
        ..NodeAmounts::default()
    };
    let reserved = Reserved {
        cpu: 500,
        memory: GIB,
        pids: 1000,
        ..Reserved::default()
    };
    let amounts = |pids, enforced| kubepods_amounts(&capacity, pids, enforced);
    let all = amounts(Some(30_000), None);
    assert_eq!(
        (all.cpu, all.memory, all.pids),
        (4000, 8 * GIB, Some(30_000))
    );
    let left = amounts(Some(30_000), Some(&reserved));
    assert_eq!(
        (left.cpu, left.memory, left.pids),
        (3500, 7 * GIB, Some(29_000))
    );
    // They are part of the memory, and can't be reserved.
    assert_eq!(left.hugepages, capacity.hugepages);
    assert_eq!(amounts(None, Some(&reserved)).pids, None);
}

#[test]
fn reserved_cgroups_have_what_is_reserved_for_them() {
    let system = texts(&[
        ("cpu", "500m"),
        ("memory", "1Gi"),
        ("pid", "100"),
        ("ephemeral-storage", "1Gi"),
    ]);
    let kube = texts(&[("memory", "64Mi")]);
    let cgroups = |enforce: &[&str]| {
        let enforce: Vec<String> = enforce.iter().map(|&entry| entry.to_owned()).collect();
        let texts = ReservedCgroupTexts {
            enforce: &enforce,
            system: (&system, "/system"),
            kube: (&kube, "/podruntime"),
        };
        reserved_cgroups(&texts, &[HUGE]).unwrap()
    };
    assert_eq!(cgroups(&["pods"]), []);
    assert_eq!(cgroups(&["none"]), []);
    let none = HugepageLimit {
        page_size: HUGE,
        limit: 0,
    };
    let found = cgroups(&["kube-reserved", "pods", "system-reserved"]);
    let names: Vec<_> = found
        .iter()
        .map(|one| (one.entry(), one.name.as_str()))
        .collect();
    assert_eq!(
        names,
        [
            ("system-reserved".to_owned(), "/system"),
            ("kube-reserved".to_owned(), "/podruntime"),
        ]
    );
    assert_eq!(
        found[0].values,
        CgroupValues {
            cpu: Some(cpu::share(500)),
            memory_limit: Some(GIB),
            pids_limit: Some(100),
            hugepages: vec![none],
            ..CgroupValues::default()
        }
    );
    assert_eq!(
        found[1].values,
        CgroupValues {
            memory_limit: Some(64 << 20),
            hugepages: vec![none],
            ..CgroupValues::default()
        }
    );
    let found = cgroups(&["system-reserved-compressible"]);
    assert_eq!(found[0].entry(), "system-reserved-compressible");
    assert_eq!(
        found[0].values,
        CgroupValues {
            cpu: Some(cpu::share(500)),
            ..CgroupValues::default()
        },
        "only the CPU"
    );
}

#[test]
fn an_amount_that_is_no_quantity_is_an_error() {
    let (much, nothing) = (texts(&[("memory", "much")]), texts(&[]));
    let texts = ReservedCgroupTexts {
        enforce: &["system-reserved".to_owned()],
        system: (&much, "/system"),
        kube: (&nothing, ""),
    };
    let error = reserved_cgroups(&texts, &[]).unwrap_err();
    assert_eq!(error.to_string(), "memory: invalid quantity \"much\"");
}
