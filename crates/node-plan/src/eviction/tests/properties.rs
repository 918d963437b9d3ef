//! Rules that hold for all inputs.

use proptest::prelude::*;

use super::*;
use crate::critical::is_critical;

const THRESHOLD: u64 = 100;
const RECLAIM: u64 = 50;

/// Steps of time in seconds, and the available amount after each; `None` if it is unknown.
fn measurements() -> impl Strategy<Value = Vec<(u64, Option<u64>)>> {
    let available = proptest::option::weighted(0.9, 0u64..250);
    proptest::collection::vec((0u64..200, available), 1..40)
}

fn watched(hard: bool) -> EvictionPolicy {
    let (threshold, none) = ([("pid.available", "100")], []);
    let (hard, soft): (&[_], &[_]) = match hard {
        true => (&threshold, &none),
        false => (&none, &threshold),
    };
    policy(
        hard,
        soft,
        &[("pid.available", "60s")],
        &[("pid.available", "50")],
    )
}

fn levels(available: Option<u64>) -> ResourceLevels {
    ResourceLevels {
        pids: available.map(|available| level(available, 1000)),
        ..ResourceLevels::default()
    }
}

/// A pod by its name's number, priority, request, usage, and whether it is static.
type PodRow = (u8, i32, u64, Option<u64>, bool);

fn pods() -> impl Strategy<Value = Vec<PodRow>> {
    let priority = prop_oneof![-2..3i32, Just(2_000_000_000)];
    let usage = proptest::option::weighted(0.9, 0u64..5);
    let row = (any::<u8>(), priority, 0u64..5, usage, any::<bool>());
    proptest::collection::vec(row, 0..8).prop_map(|mut rows| {
        rows.sort_by_key(|row| row.0);
        rows.dedup_by_key(|row| row.0);
        rows
    })
}

fn built(rows: &[PodRow]) -> Vec<(Pod, Option<PodUsage>)> {
    rows.iter()
        .map(|(name, priority, request, usage, is_static)| {
            let mut pod = api_pod(&format!("{name:03}"), *priority, *request);
            if *is_static {
                pod.source = PodSource::File;
            }
            (pod, usage.map(uses_memory))
        })
        .collect()
}

/// The evicted pod.
fn evicted(pods: &[(Pod, Option<PodUsage>)]) -> Option<PodUid> {
    let candidates: Vec<_> = pods
        .iter()
        .map(|(pod, usage)| EvictionCandidate {
            pod,
            usage: usage.as_ref(),
            is_leaving: false,
        })
        .collect();
    let short = shortage("memory.available", "100Mi", 0);
    let policy = EvictionPolicy::default();
    match choose(&policy, FileSystemLayout::Single, &short, &candidates) {
        EvictionChoice::Evict(eviction) => Some(eviction.uid),
        EvictionChoice::AwaitEnd(_) | EvictionChoice::NoCandidate => None,
    }
}

proptest! {
    #[test]
    fn a_hard_threshold_is_due_from_its_shortage_until_enough_is_free(script in measurements()) {
        let policy = watched(true);
        let mut monitor = EvictionMonitor::default();
        let (mut now, mut due) = (0, false);
        for (step, available) in script {
            now += step;
            let round = monitor.observe(&policy, &levels(available), Duration::from_secs(now));
            if let Some(available) = available {
                due = available < THRESHOLD || (due && available < THRESHOLD + RECLAIM);
                prop_assert_eq!(round.due.len(), usize::from(due));
            } else {
                prop_assert!(round.due.is_empty());
            }
            prop_assert!(!due || round.pressure.pid);
        }
    }

    #[test]
    fn a_soft_threshold_is_never_due_before_its_grace_period(script in measurements()) {
        let policy = watched(false);
        let mut monitor = EvictionMonitor::default();
        let (mut now, mut met_since) = (0, None);
        for (step, available) in script {
            now += step;
            let round = monitor.observe(&policy, &levels(available), Duration::from_secs(now));
            if available.is_some_and(|available| available >= THRESHOLD + RECLAIM) {
                met_since = None;
                prop_assert!(round.due.is_empty());
            } else if available.is_some_and(|available| available < THRESHOLD) {
                let since = *met_since.get_or_insert(now);
                prop_assert!(round.due.is_empty() || now - since >= 60);
                let next = round.next_grace_end.map(|next| next.as_secs());
                prop_assert!(next.is_none_or(|next| next <= 60 && next > 0));
                prop_assert_eq!(next.is_none(), !round.due.is_empty());
            }
        }
    }

    #[test]
    fn pressure_ends_only_after_the_transition_period(script in measurements()) {
        let policy = watched(true);
        let mut monitor = EvictionMonitor::default();
        let (mut now, mut last_met) = (0, None);
        for (step, available) in script {
            now += step;
            let round = monitor.observe(&policy, &levels(available), Duration::from_secs(now));
            if available.is_some_and(|available| available < THRESHOLD) {
                last_met = Some(now);
            }
            if last_met.is_some_and(|last| now - last < 300) {
                prop_assert!(round.pressure.pid);
            }
            prop_assert!(last_met.is_some() || !round.pressure.pid);
        }
    }

    #[test]
    fn the_order_of_the_list_does_not_matter(rows in pods(), turn in 0usize..8) {
        let mut pods = built(&rows);
        let expected = evicted(&pods);
        let middle = turn.min(pods.len());
        pods.rotate_left(middle);
        prop_assert_eq!(evicted(&pods), expected.clone());
        pods.reverse();
        prop_assert_eq!(evicted(&pods), expected);
    }

    #[test]
    fn no_critical_pod_goes_and_some_other_always_does(rows in pods()) {
        let pods = built(&rows);
        let gone = evicted(&pods);
        let may_go = |pod: &Pod| !is_critical(pod);
        prop_assert_eq!(gone.is_some(), pods.iter().any(|(pod, _)| may_go(pod)));
        prop_assert!(pods.iter().all(|(pod, _)| may_go(pod) || Some(&pod.uid) != gone.as_ref()));
    }

    #[test]
    fn a_pod_within_its_requests_goes_only_if_all_do(rows in pods()) {
        let pods = built(&rows);
        let within = |pod: &Pod, usage: &Option<PodUsage>| {
            let requested = pod.spec.containers[0].resources.requests.memory.unwrap_or(0);
            usage.as_ref().is_some_and(|usage| usage.memory <= requested)
        };
        if let Some(gone) = evicted(&pods)
            && pods.iter().any(|(pod, usage)| pod.uid == gone && within(pod, usage))
        {
            let mut others = pods.iter().filter(|(pod, _)| !is_critical(pod));
            prop_assert!(others.all(|(pod, usage)| within(pod, usage)));
        }
    }

    #[test]
    fn using_more_never_saves_a_pod(rows in pods(), more in 0u64..5) {
        let mut pods = built(&rows);
        let Some(gone) = evicted(&pods) else {
            return Ok(());
        };
        for (pod, usage) in &mut pods {
            if let Some(usage) = usage.as_mut().filter(|_| pod.uid == gone) {
                usage.memory += more;
            }
        }
        prop_assert_eq!(evicted(&pods), Some(gone));
    }
}
