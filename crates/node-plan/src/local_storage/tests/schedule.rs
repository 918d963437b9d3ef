//! When pods are measured.

use std::time::Duration;

use proptest::prelude::*;
use rubelet_base::PodUid;

use super::*;

const GIB: u64 = 1 << 30;
const FREE: Bytes = 500 * GIB;

fn secs(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds)
}

fn uid() -> PodUid {
    PodUid::from("u1")
}

/// A pod that was measured at 0 s.
fn measured(headroom: Bytes, took: Duration) -> StorageSchedule {
    let mut schedule = StorageSchedule::default();
    schedule.looked(Some(FREE), Duration::ZERO);
    assert!(schedule.is_due(&uid(), Duration::ZERO), "it is new");
    schedule.measured(
        &uid(),
        StorageMeasurement { headroom, took },
        Duration::ZERO,
    );
    schedule
}

#[test]
fn where_nothing_is_written_a_pod_is_measured_each_minute() {
    let mut schedule = measured(10 * GIB, Duration::ZERO);
    for second in 1..60 {
        schedule.looked(Some(FREE), secs(f64::from(second)));
        assert!(
            !schedule.is_due(&uid(), secs(f64::from(second))),
            "{second}"
        );
    }
    assert!(schedule.is_due(&uid(), secs(60.0)));
}

#[test]
fn the_free_space_is_read_as_often_as_a_disk_is_fast() {
    for (headroom, expected) in [
        (0, 1.0),
        (100 * MIB, 1.0),
        (GIB, 1.0),
        (8 * GIB, 2.0),
        (20 * GIB, 5.0),
        (400 * GIB, 10.0),
    ] {
        let schedule = measured(headroom, Duration::ZERO);
        assert_eq!(schedule.next(Duration::ZERO), secs(expected), "{headroom}");
    }
    assert_eq!(StorageSchedule::default().next(Duration::ZERO), secs(10.0));
}

#[test]
fn a_pod_that_may_have_crossed_its_limit_is_measured_at_once() {
    for (headroom, lost, expected) in [
        (GIB, 400 * MIB, false),
        (GIB, 512 * MIB, true),
        (GIB, 100 * GIB, true),
        // Each write of others would cause it otherwise.
        (0, MIB, false),
        (0, 8 * MIB, true),
    ] {
        let mut schedule = measured(headroom, Duration::ZERO);
        schedule.looked(Some(FREE - lost), secs(1.0));
        let found = schedule.is_due(&uid(), secs(1.0));
        assert_eq!(found, expected, "{headroom}, {lost}");
        // Others free as much.
        schedule.looked(Some(FREE), secs(2.0));
        assert!(!schedule.is_due(&uid(), secs(2.0)));
    }
}

#[test]
fn while_space_is_lost_the_next_look_comes_before_the_limit() {
    let mut schedule = measured(4 * GIB, Duration::ZERO);
    // 1 GiB of the 2 GiB that matter is lost in a second.
    schedule.looked(Some(FREE - GIB), secs(1.0));
    assert_eq!(schedule.next(secs(1.0)), secs(1.0));
    schedule.looked(Some(FREE - GIB - GIB / 2), secs(1.5));
    assert_eq!(schedule.next(secs(1.5)), secs(0.5));
    schedule.looked(Some(FREE - 2 * GIB + MIB), secs(2.0));
    assert_eq!(schedule.next(secs(2.0)), secs(0.2), "not all the time");
}

#[test]
fn a_pod_that_grows_is_measured_before_it_crosses_the_limit() {
    let mut schedule = measured(1000 * MIB, Duration::ZERO);
    let next = StorageMeasurement {
        headroom: 900 * MIB,
        took: Duration::ZERO,
    };
    schedule.looked(Some(FREE - 100 * MIB), secs(10.0));
    schedule.measured(&uid(), next, secs(10.0));
    // At 10 MiB a second it has 90 s.
    schedule.looked(Some(FREE - 100 * MIB), secs(54.0));
    assert!(!schedule.is_due(&uid(), secs(54.9)));
    assert!(schedule.is_due(&uid(), secs(55.0)));
}

#[test]
fn after_a_loss_of_space_a_pod_is_measured_twice() {
    let mut schedule = measured(GIB, Duration::ZERO);
    schedule.looked(Some(FREE - GIB), secs(1.0));
    let unchanged = StorageMeasurement {
        headroom: GIB,
        took: Duration::ZERO,
    };
    schedule.measured(&uid(), unchanged, secs(1.0));
    assert!(!schedule.is_due(&uid(), secs(11.9)));
    assert!(
        schedule.is_due(&uid(), secs(12.0)),
        "the runtime may know by now"
    );
    schedule.measured(&uid(), unchanged, secs(12.0));
    assert!(!schedule.is_due(&uid(), secs(71.9)));
}

#[test]
fn a_pod_that_takes_long_to_measure_rests() {
    let mut schedule = measured(GIB, secs(3.0));
    schedule.looked(Some(FREE - 9 * GIB), secs(1.0));
    assert!(!schedule.is_due(&uid(), secs(29.9)));
    assert_eq!(schedule.next(secs(1.0)), secs(1.0));
    assert!(schedule.is_due(&uid(), secs(30.0)));
}

#[test]
fn without_the_free_space_pods_are_measured_more_often() {
    let mut schedule = measured(GIB, Duration::ZERO);
    schedule.looked(None, secs(1.0));
    assert!(!schedule.is_due(&uid(), secs(10.9)));
    assert!(schedule.is_due(&uid(), secs(11.0)));
    assert_eq!(schedule.next(secs(1.0)), secs(10.0));
    schedule.retain(|_| false);
    assert!(schedule.is_due(&uid(), secs(2.0)), "it is forgotten");
}

proptest! {
    /// However a pod writes, up to the speed of the disk: when it has crossed its limit by more than it
    /// can write between two looks, it was measured since.
    #[test]
    fn no_pod_writes_far_beyond_its_limit(
        limit in 0..20 * GIB,
        rates in prop::collection::vec((0..2 * GIB, 1..20_u32), 1..20),
    ) {
        let mut schedule = measured(limit, Duration::ZERO);
        let (mut now, mut written) = (Duration::ZERO, 0_u64);
        let mut last = 0_u64;
        for (rate, rounds) in rates {
            for _ in 0..rounds {
                let wait = schedule.next(now);
                prop_assert!(wait >= secs(0.2) && wait <= secs(10.0), "{wait:?}");
                now += wait;
                let millis = u64::try_from(wait.as_millis()).unwrap();
                let more = rate / 1000 * millis;
                written += more;
                schedule.looked(Some(FREE.saturating_sub(written)), now);
                if schedule.is_due(&uid(), now) {
                    last = written;
                    let headroom = limit.saturating_sub(written);
                    let found = StorageMeasurement { headroom, took: Duration::ZERO };
                    schedule.measured(&uid(), found, now);
                    if headroom == 0 {
                        prop_assert!(written - limit <= 2 * GIB + 8 * MIB, "{written} of {limit}");
                        return Ok(());
                    }
                }
                let unnoticed = written - last;
                let left = limit.saturating_sub(last);
                prop_assert!(unnoticed < (left / 2).max(8 * MIB), "{unnoticed} of {left}");
            }
        }
    }
}
