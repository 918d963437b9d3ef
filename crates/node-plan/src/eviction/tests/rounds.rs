//! Thresholds over time.

use super::*;

/// The signals that are due, and the pressure on memory, after each measurement at a second.
fn run(policy: &EvictionPolicy, script: &[(u64, Option<u64>)]) -> Vec<(usize, bool, Option<u64>)> {
    let mut monitor = EvictionMonitor::default();
    script
        .iter()
        .map(|(second, available)| {
            let levels = available.map_or_else(ResourceLevels::default, memory);
            let round = monitor.observe(policy, &levels, Duration::from_secs(*second));
            let next = round.next_grace_end.map(|next| next.as_secs());
            (round.due.len(), round.pressure.memory, next)
        })
        .collect()
}

#[test]
fn a_hard_threshold_is_due_at_once_and_pressure_lasts_for_the_transition_period() {
    let policy = policy(&[("memory.available", "100Mi")], &[], &[], &[]);
    let found = run(
        &policy,
        &[
            (0, Some(100 * MIB)),
            (10, Some(99 * MIB)),
            (20, Some(100 * MIB)),
            (309, Some(500 * MIB)),
            (310, Some(500 * MIB)),
        ],
    );
    let expected = [
        (0, false, None),
        (1, true, None),
        (0, true, None),
        (0, true, None),
        (0, false, None),
    ];
    assert_eq!(found, expected);
}

#[test]
fn a_soft_threshold_is_due_after_its_grace_period_without_a_break() {
    let policy = policy(
        &[],
        &[("memory.available", "100Mi")],
        &[("memory.available", "30s")],
        &[],
    );
    let low = Some(50 * MIB);
    let found = run(
        &policy,
        &[
            (0, low),
            (20, low),
            (25, Some(200 * MIB)),
            (29, low),
            (58, low),
            (59, low),
            (60, low),
        ],
    );
    let expected = [
        (0, true, Some(30)),
        (0, true, Some(10)),
        (0, true, None),
        (0, true, Some(30)),
        (0, true, Some(1)),
        (1, true, None),
        (1, true, None),
    ];
    assert_eq!(found, expected);
}

#[test]
fn a_shortage_that_was_due_ends_with_the_minimum_reclaim() {
    let policy = policy(
        &[("memory.available", "100Mi")],
        &[],
        &[],
        &[("memory.available", "50Mi")],
    );
    let found = run(
        &policy,
        &[
            (0, Some(120 * MIB)),
            (10, Some(90 * MIB)),
            (20, Some(149 * MIB)),
            (30, Some(150 * MIB)),
            (40, Some(149 * MIB)),
        ],
    );
    let due: Vec<usize> = found.iter().map(|(due, ..)| *due).collect();
    assert_eq!(due, [0, 1, 1, 0, 0]);
    assert!(policy.has_shortage(&memory(149 * MIB)));
    assert!(!policy.has_shortage(&memory(150 * MIB)));
    assert!(!policy.has_shortage(&ResourceLevels::default()));
}

#[test]
fn an_unknown_level_neither_ends_a_shortage_nor_evicts() {
    let policy = policy(
        &[],
        &[("memory.available", "100Mi")],
        &[("memory.available", "30s")],
        &[],
    );
    let low = Some(50 * MIB);
    let found = run(&policy, &[(0, low), (20, None), (500, None), (510, low)]);
    let expected = [
        (0, true, Some(30)),
        (0, true, Some(10)),
        (0, true, None),
        (1, true, None),
    ];
    assert_eq!(found, expected);
}

#[test]
fn memory_is_handled_before_disks_and_hard_thresholds_before_soft_ones() {
    let policy = policy(
        &[
            ("nodefs.available", "10%"),
            ("imagefs.inodesFree", "5%"),
            ("memory.available", "100Mi"),
        ],
        &[("memory.available", "200Mi")],
        &[("memory.available", "0s")],
        &[],
    );
    let file_system = |bytes, inodes| {
        Some(FileSystem {
            bytes: level(bytes, 1000),
            inodes: level(inodes, 1000),
        })
    };
    let levels = ResourceLevels {
        nodefs: file_system(99, 0),
        imagefs: file_system(0, 49),
        ..memory(50 * MIB)
    };
    let mut monitor = EvictionMonitor::default();
    let round = monitor.observe(&policy, &levels, Duration::ZERO);
    let due: Vec<_> = round
        .due
        .iter()
        .map(|one| one.threshold.signal.as_str())
        .collect();
    assert_eq!(
        due,
        [
            "memory.available",
            "memory.available",
            "nodefs.available",
            "imagefs.inodesFree"
        ]
    );
    assert!(round.pressure.memory && round.pressure.disk && !round.pressure.pid);
}

#[test]
fn a_file_system_that_does_not_count_inodes_has_no_shortage_of_them() {
    let policy = policy(&[("nodefs.inodesFree", "100")], &[], &[], &[]);
    for (capacity, due) in [(0, 0), (1000, 1)] {
        let levels = ResourceLevels {
            nodefs: Some(FileSystem {
                bytes: level(1, 1),
                inodes: level(0, capacity),
            }),
            ..ResourceLevels::default()
        };
        let round = EvictionMonitor::default().observe(&policy, &levels, Duration::ZERO);
        assert_eq!(round.due.len(), due);
    }
}
