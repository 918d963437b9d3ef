//! Tables and properties of groups.

use proptest::prelude::*;

use super::*;
use crate::test_pods::pod;

fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

fn groups(list: &[(i32, u64)]) -> Vec<ShutdownGroup> {
    let group = |&(priority, period)| ShutdownGroup {
        priority,
        period: seconds(period),
    };
    list.iter().map(group).collect()
}

fn of_priority(priority: i32) -> Arc<Pod> {
    let mut pod = pod();
    pod.spec.priority = priority;
    Arc::new(pod)
}

/// The priorities of the pods of each group, in order.
fn ends(policy: &ShutdownPolicy, priorities: &[i32]) -> Vec<(u64, Vec<i32>)> {
    let plan = policy.plan(priorities.iter().copied().map(of_priority));
    plan.iter()
        .map(|ending| {
            let pods = ending.pods.iter().map(|pod| pod.spec.priority);
            (ending.group.period.as_secs(), pods.collect())
        })
        .collect()
}

#[test]
fn critical_pods_end_last_in_the_part_of_the_period_that_is_theirs() {
    let policy = ShutdownPolicy::of_periods(seconds(30), seconds(10)).unwrap();
    assert_eq!(policy.period(), seconds(30));
    assert_eq!(
        ends(
            &policy,
            &[2_000_001_000, 0, -5, 1_999_999_999, 2_000_000_000]
        ),
        [
            (20, vec![0, -5, 1_999_999_999]),
            (10, vec![2_000_001_000, 2_000_000_000])
        ]
    );
    assert_eq!(ends(&policy, &[2_000_000_000]), [(10, vec![2_000_000_000])]);
    assert_eq!(ends(&policy, &[]), []);
    let millis = Duration::from_millis;
    let rounded = ShutdownPolicy::of_periods(millis(2500), millis(1200)).unwrap();
    assert_eq!(ends(&rounded, &[0, 2_000_000_000])[0].0, 1);
    assert_eq!(ShutdownPolicy::of_periods(seconds(0), seconds(0)), None);
    assert_eq!(ShutdownPolicy::of_periods(seconds(1), seconds(2)), None);
}

#[test]
fn a_priority_between_two_groups_belongs_to_the_lower_one() {
    // As the table in the documentation of Kubernetes.
    let list = groups(&[(100_000, 10), (10_000, 180), (1000, 120), (0, 60)]);
    let policy = ShutdownPolicy::of_priorities(list).unwrap();
    assert_eq!(policy.period(), seconds(370));
    for (priority, period) in [
        (i32::MIN, 60),
        (-1, 60),
        (0, 60),
        (999, 60),
        (1000, 120),
        (9999, 120),
        (10_000, 180),
        (99_999, 180),
        (100_000, 10),
        (i32::MAX, 10),
    ] {
        let found = ends(&policy, &[priority]);
        assert_eq!(found, [(period, vec![priority])], "{priority}");
    }
    let only = ShutdownPolicy::of_priorities(groups(&[(1000, 5)])).unwrap();
    assert_eq!(ends(&only, &[0, 5000]), [(5, vec![0, 5000])]);
    assert_eq!(ShutdownPolicy::of_priorities(Vec::new()), None);
}

#[test]
fn a_pod_has_no_more_time_than_its_group() {
    let policy = ShutdownPolicy::of_periods(seconds(20), seconds(0)).unwrap();
    for (own, expected) in [(5, 5), (20, 20), (30, 20), (0, 0)] {
        let mut pod = pod();
        pod.spec.termination_grace_period = seconds(own);
        let pod = Arc::new(pod);
        let plan = policy.plan([Arc::clone(&pod)]);
        assert_eq!(plan[0].grace(&pod), seconds(expected), "{own}");
    }
}

proptest! {
    /// Each pod ends once; no pod ends after one of higher priority; all groups together fit in the
    /// delay that is asked for.
    #[test]
    fn pods_end_by_priority(
        list in proptest::collection::vec((-5..5_i32, 0..100_u64), 1..6),
        priorities in proptest::collection::vec(-8..8_i32, 0..20),
    ) {
        let policy = ShutdownPolicy::of_priorities(groups(&list)).unwrap();
        let plan = ends(&policy, &priorities);
        let mut ended: Vec<i32> = plan.iter().flat_map(|(_, pods)| pods.clone()).collect();
        for pair in plan.windows(2) {
            prop_assert!(pair[0].1.iter().max() < pair[1].1.iter().min(), "{plan:?}");
        }
        let used: u64 = plan.iter().map(|(period, _)| period).sum();
        prop_assert!(seconds(used) <= policy.period());
        let mut all = priorities;
        all.sort_unstable();
        ended.sort_unstable();
        prop_assert_eq!(ended, all);
    }
}
