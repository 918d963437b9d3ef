//! Tests of `cadence`.

use std::collections::BTreeSet;

use super::*;

const SECOND: Duration = Duration::from_secs(1);

/// The next relists, in seconds from `start`; each takes no time.
fn times(cadence: &mut Cadence, start: Instant, count: usize) -> Vec<f64> {
    let one = |_| {
        let at = cadence.next();
        cadence.listed(at, at);
        at.duration_since(start).as_secs_f64()
    };
    (0..count).map(one).collect()
}

#[test]
fn without_events_each_period() {
    let start = Instant::now();
    let mut cadence = Cadence::new(SECOND, start);
    assert_eq!(times(&mut cadence, start, 3), [0.0, 1.0, 2.0]);
}

#[test]
fn with_events_thrice_after_the_connect_and_then_about_each_minute() {
    let start = Instant::now();
    let mut cadence = Cadence::new(SECOND, start);
    cadence.connected(start);
    let times = times(&mut cadence, start, 30);
    assert_eq!(times[..3], [0.0, 1.0, 5.0]);
    let periods = times[2..].windows(2).map(|two| (two[1] - two[0]).round());
    let periods: Vec<f64> = periods.collect();
    assert!(periods.iter().all(|period| (54.0..=66.0).contains(period)));
    let varied: BTreeSet<i64> = periods.iter().map(|period| *period as i64).collect();
    assert!(varied.len() > 10, "they vary: {varied:?}");
}

#[test]
fn what_was_missed_makes_it_watchful_for_a_minute_and_then_less_and_less() {
    let start = Instant::now();
    let mut cadence = Cadence::new(SECOND, start);
    cadence.connected(start);
    times(&mut cadence, start, 4);
    let now = cadence.next() - SECOND;
    cadence.suspect(now);
    let times = times(&mut cadence, now, 68);
    assert_eq!(times[0], 0.0);
    assert!(times[..61].windows(2).all(|two| two[1] - two[0] == 1.0));
    let later: Vec<f64> = times[60..67]
        .windows(2)
        .map(|two| two[1] - two[0])
        .collect();
    assert_eq!(later, [1.0, 2.0, 4.0, 8.0, 16.0, 32.0]);
}

#[test]
fn a_lost_stream_means_polling_at_once() {
    let start = Instant::now();
    let mut cadence = Cadence::new(SECOND, start);
    cadence.connected(start);
    times(&mut cadence, start, 4);
    let lost = start + Duration::from_secs(10);
    cadence.disconnected(lost);
    assert_eq!(times(&mut cadence, lost, 3), [1.0, 2.0, 3.0]);
    assert!(!cadence.is_gapless());
}

#[test]
fn events_of_unknown_pods_share_one_relist() {
    let start = Instant::now();
    let mut cadence = Cadence::new(SECOND, start);
    cadence.connected(start);
    times(&mut cadence, start, 3);
    let now = start + Duration::from_secs(20);
    for late in 0..40 {
        cadence.unknown_pod(now + Duration::from_millis(late));
    }
    assert_eq!(cadence.next(), now + DEBOUNCE);
}
