//! Tests of `relist_schedule`.

use std::collections::BTreeSet;

use super::*;

const SECOND: Duration = Duration::from_secs(1);

/// The next relists, in seconds from `start`; each takes no time.
fn times(schedule: &mut RelistSchedule, start: Instant, count: usize) -> Vec<f64> {
    let one = |_| {
        let at = schedule.next();
        schedule.listed(at, at);
        at.duration_since(start).as_secs_f64()
    };
    (0..count).map(one).collect()
}

#[test]
fn without_events_relists_follow_each_period() {
    let start = Instant::now();
    let mut schedule = RelistSchedule::new(SECOND, start);
    assert_eq!(times(&mut schedule, start, 3), [0.0, 1.0, 2.0]);
}

#[test]
fn with_events_three_relists_follow_the_connect_and_then_one_each_minute() {
    let start = Instant::now();
    let mut schedule = RelistSchedule::new(SECOND, start);
    schedule.connected(start);
    let times = times(&mut schedule, start, 30);
    assert_eq!(times[..3], [0.0, 1.0, 5.0]);
    let periods = times[2..].windows(2).map(|two| (two[1] - two[0]).round());
    let periods: Vec<f64> = periods.collect();
    assert!(periods.iter().all(|period| (54.0..=66.0).contains(period)));
    let varied: BTreeSet<i64> = periods.iter().map(|period| *period as i64).collect();
    assert!(varied.len() > 10, "they vary: {varied:?}");
}

#[test]
fn a_missed_event_makes_relists_frequent_for_a_minute_and_then_rarer() {
    let start = Instant::now();
    let mut schedule = RelistSchedule::new(SECOND, start);
    schedule.connected(start);
    times(&mut schedule, start, 4);
    let now = schedule.next() - SECOND;
    schedule.suspect(now);
    let times = times(&mut schedule, now, 68);
    assert_eq!(times[0], 0.0);
    assert!(times[..61].windows(2).all(|two| two[1] - two[0] == 1.0));
    let later: Vec<f64> = times[60..67]
        .windows(2)
        .map(|two| two[1] - two[0])
        .collect();
    assert_eq!(later, [1.0, 2.0, 4.0, 8.0, 16.0, 32.0]);
}

#[test]
fn a_lost_stream_starts_polling_at_once() {
    let start = Instant::now();
    let mut schedule = RelistSchedule::new(SECOND, start);
    schedule.connected(start);
    times(&mut schedule, start, 4);
    let lost = start + Duration::from_secs(10);
    schedule.disconnected(lost);
    assert_eq!(times(&mut schedule, lost, 3), [1.0, 2.0, 3.0]);
    assert!(!schedule.is_gapless());
}

#[test]
fn events_of_unknown_pods_share_one_relist() {
    let start = Instant::now();
    let mut schedule = RelistSchedule::new(SECOND, start);
    schedule.connected(start);
    times(&mut schedule, start, 3);
    let now = start + Duration::from_secs(20);
    for late in 0..40 {
        schedule.unknown_pod(now + Duration::from_millis(late));
    }
    assert_eq!(schedule.next(), now + DEBOUNCE);
}
