//! When a node is measured again.

use super::*;

#[test]
fn a_node_is_measured_more_often_the_faster_a_resource_runs_out() {
    let policy = policy(&[("memory.available", "100Mi")], &[], &[], &[]);
    for (what, before, after, expected) in [
        ("nothing changes", 500, 500, 10_000),
        ("it recovers", 500, 600, 10_000),
        ("it falls slowly", 900, 890, 10_000),
        // 100 MiB in 10 s: the threshold is 10 s away.
        ("it falls", 300, 200, 5_000),
        ("it falls fast", 900, 101, 200),
        ("the threshold is met", 200, 99, 10_000),
    ] {
        let mut schedule = MeasuringSchedule::default();
        let round = EvictionRound::default();
        let mut next = |second, mib: u64| {
            let at = Duration::from_secs(second);
            schedule.next(&policy, &memory(mib * MIB), &round, at)
        };
        assert_eq!(next(0, before).as_millis(), 10_000, "{what}");
        assert_eq!(next(10, after).as_millis(), expected, "{what}");
    }
}

#[test]
fn the_end_of_a_grace_period_is_not_missed() {
    let round = EvictionRound {
        next_grace_end: Some(Duration::from_millis(50)),
        ..EvictionRound::default()
    };
    let next = MeasuringSchedule::default().next(
        &EvictionPolicy::default(),
        &memory(1),
        &round,
        Duration::ZERO,
    );
    assert_eq!(next, Duration::from_millis(50));
}

#[test]
fn amounts_beyond_all_measure_do_no_harm() {
    let policy = policy(&[("memory.available", "1")], &[], &[], &[]);
    let mut schedule = MeasuringSchedule::default();
    let round = EvictionRound::default();
    for available in [u64::MAX, u64::MAX - 1, 0] {
        let now = Duration::from_secs(u64::MAX - available);
        let next = schedule.next(&policy, &memory(available), &round, now);
        assert!(next <= Duration::from_secs(10));
    }
}

#[test]
fn the_headroom_is_that_of_the_next_threshold_of_memory() {
    let hard = [("memory.available", "100Mi"), ("nodefs.available", "1Ti")];
    let policy = policy(
        &hard,
        &[("memory.available", "300Mi")],
        &[("memory.available", "1m")],
        &[],
    );
    for (available, expected) in [
        (500 * MIB, Some(200 * MIB + 1)),
        (300 * MIB, Some(1)),
        (200 * MIB, Some(100 * MIB + 1)),
        (99 * MIB, None),
    ] {
        assert_eq!(
            policy.memory_headroom(&memory(available)),
            expected,
            "{available}"
        );
    }
    assert_eq!(policy.memory_headroom(&ResourceLevels::default()), None);
}
