//! The configuration.

use super::*;

#[test]
fn thresholds_are_in_the_order_of_their_shortages() {
    let read = policy(
        &[
            ("pid.available", "1k"),
            ("nodefs.available", "10%"),
            ("memory.available", "100Mi"),
            ("nodefs.inodesFree", "0%"),
            ("imagefs.available", "100%"),
            ("containerfs.available", "1"),
        ],
        &[("memory.available", "200Mi")],
        &[("memory.available", "1m30s")],
        &[("memory.available", "10Mi"), ("nodefs.available", "25%")],
    );
    let shown: Vec<_> = read
        .thresholds
        .iter()
        .map(|one| {
            let reclaim = one.min_reclaim.map(|reclaim| reclaim.of(1000));
            (
                one.signal.as_str(),
                one.value.of(1000),
                one.grace.as_secs(),
                reclaim,
            )
        })
        .collect();
    assert_eq!(
        shown,
        [
            ("memory.available", 100 * MIB, 0, Some(10 * MIB)),
            ("memory.available", 200 * MIB, 90, Some(10 * MIB)),
            ("nodefs.available", 100, 0, Some(250)),
            ("containerfs.available", 100, 0, Some(250)),
            ("pid.available", 1000, 0, None),
        ]
    );
}

#[test]
fn the_memory_of_all_pods_has_the_hard_threshold_where_it_is_limited() {
    let (hard, soft) = (
        texts(&[("memory.available", "1")]),
        texts(&[("memory.available", "2")]),
    );
    let soft_grace = texts(&[("memory.available", "1s")]);
    for (enforces_pods, count) in [(false, 0), (true, 1)] {
        let texts = EvictionTexts {
            hard: &hard,
            soft: &soft,
            soft_grace: &soft_grace,
            min_reclaim: &texts(&[]),
            enforces_pods,
        };
        let read = EvictionPolicy::parse(&texts, Duration::ZERO, Duration::ZERO).unwrap();
        let of_pods = read
            .thresholds
            .iter()
            .filter(|one| one.signal == EvictionSignal::AllocatableMemoryAvailable);
        assert_eq!(of_pods.count(), count);
    }
}

#[test]
fn a_mistake_is_named_with_its_signal() {
    let parse = |hard: &[(&str, &str)], soft: &[(&str, &str)], grace: &[(&str, &str)]| {
        let texts = EvictionTexts {
            hard: &texts(hard),
            soft: &texts(soft),
            soft_grace: &texts(grace),
            min_reclaim: &texts(&[("memory.available", "some")]),
            enforces_pods: false,
        };
        let read = EvictionPolicy::parse(&texts, Duration::ZERO, Duration::ZERO);
        read.unwrap_err().to_string()
    };
    let memory = [("memory.available", "1Gi")];
    for (found, expected) in [
        (
            parse(&[("pid.available", "much")], &[], &[]),
            "pid.available: \"much\" is neither a quantity nor a percentage",
        ),
        (
            parse(&memory, &[], &[]),
            "memory.available: \"some\" is neither a quantity nor a percentage",
        ),
        (
            parse(&[], &memory, &[]),
            "evictionSoft[memory.available]: needs an entry of the same name in \
             evictionSoftGracePeriod",
        ),
        (
            parse(&[], &memory, &[("memory.available", "soon")]),
            "evictionSoftGracePeriod[memory.available]: \"soon\" is not a duration",
        ),
    ] {
        assert_eq!(found, expected);
    }
}

#[test]
fn what_the_node_frees_first_follows_from_its_file_systems() {
    use EvictionSignal as Signal;
    use FileSystemLayout::{ImageFileSystem, Single, SplitImageFileSystem};
    use NodeReclaim::{DeadContainers, UnusedImages};
    let rows: [(_, _, &[NodeReclaim]); 9] = [
        (Single, Signal::MemoryAvailable, &[]),
        (Single, Signal::PidAvailable, &[]),
        (
            Single,
            Signal::NodefsAvailable,
            &[DeadContainers, UnusedImages],
        ),
        (ImageFileSystem, Signal::NodefsInodesFree, &[]),
        (
            ImageFileSystem,
            Signal::ImagefsInodesFree,
            &[DeadContainers, UnusedImages],
        ),
        (
            ImageFileSystem,
            Signal::ContainerfsAvailable,
            &[DeadContainers, UnusedImages],
        ),
        (
            SplitImageFileSystem,
            Signal::ImagefsAvailable,
            &[UnusedImages],
        ),
        (
            SplitImageFileSystem,
            Signal::NodefsAvailable,
            &[DeadContainers],
        ),
        (
            SplitImageFileSystem,
            Signal::ContainerfsInodesFree,
            &[DeadContainers],
        ),
    ];
    for (layout, signal, expected) in rows {
        assert_eq!(layout.reclaims(signal), expected, "{layout:?} {signal:?}");
    }
}
