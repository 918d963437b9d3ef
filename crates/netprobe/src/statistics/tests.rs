//! Statistics against values that were computed by hand, and against all values at once.

use proptest::prelude::*;

use super::*;

fn of(millis: &[u64]) -> Summary {
    let mut statistics = Statistics::default();
    for rtt in millis {
        statistics.on_sent();
        statistics.on_reply(Some(Duration::from_millis(*rtt)), false);
    }
    statistics.summary()
}

#[test]
fn four_times_have_their_mean_and_deviation() {
    let rtt = of(&[2, 4, 4, 6]).rtt.unwrap();
    assert_eq!(rtt.min, Duration::from_millis(2));
    assert_eq!(rtt.avg, Duration::from_millis(4));
    assert_eq!(rtt.max, Duration::from_millis(6));
    assert_eq!(rtt.last, Duration::from_millis(6));
    // The square root of 2, in nanoseconds.
    assert_eq!(rtt.mdev, Duration::from_nanos(1_414_214));
    // 2/16, then 15/16 of it, then 15/16 of that and 2/16.
    assert_eq!(rtt.jitter, Duration::from_nanos(234_863));
}

#[test]
fn loss_counts_probes_and_not_answers() {
    let mut statistics = Statistics::default();
    for _ in 0..3 {
        statistics.on_sent();
    }
    statistics.on_reply(None, false);
    statistics.on_duplicate();
    statistics.on_duplicate();
    statistics.on_damaged();
    statistics.on_error();
    let summary = statistics.summary();
    assert!((summary.loss_percent - 200.0 / 3.0).abs() < 1e-9);
    assert_eq!((summary.received, summary.duplicates), (1, 2));
    assert_eq!((summary.damaged, summary.errors), (1, 1));
    assert_eq!(summary.rtt, None);
    assert!(Statistics::default().summary().loss_percent.abs() < 1e-9);
}

proptest! {
    #[test]
    fn times_are_in_order_and_survive_json(
        millis in proptest::collection::vec(0_u64..100_000, 1..100),
    ) {
        let summary = of(&millis);
        let rtt = summary.rtt.unwrap();
        prop_assert!(rtt.min <= rtt.p50 && rtt.p50 <= rtt.p95 && rtt.p95 <= rtt.p99);
        prop_assert!(rtt.p99 <= rtt.max && rtt.min <= rtt.avg && rtt.avg <= rtt.max);
        let mean: u64 = millis.iter().sum::<u64>() * 1_000_000 / millis.len() as u64;
        prop_assert!(rtt.avg.abs_diff(Duration::from_nanos(mean)) <= Duration::from_nanos(2));
        let json = serde_json::to_string(&summary).unwrap();
        let back: Summary = serde_json::from_str(&json).unwrap();
        prop_assert_eq!(back, summary);
    }
}
