//! Tests of `start_events`.

use super::*;

#[test]
fn an_event_may_come_before_or_after_the_answer() {
    let now = Instant::now();
    let (early, late) = (ContainerId::from("early"), ContainerId::from("late"));
    let mut starts = StartEvents::default();
    starts.called(&early);
    starts.called(&late);
    starts.heard("early");
    assert!(!starts.answered(&early, true, now), "it has come");
    assert!(starts.answered(&late, true, now));
    assert_eq!(starts.check(now + LIMIT / 2), None);
    starts.heard("late");
    assert_eq!(starts.next(), None);
    assert_eq!(starts.check(now + LIMIT), None);
}

#[test]
fn a_failed_start_has_no_event() {
    let mut starts = StartEvents::default();
    let id = ContainerId::from("a");
    starts.called(&id);
    assert!(!starts.answered(&id, false, Instant::now()));
    assert_eq!(starts.next(), None);
}

#[test]
fn missing_events_renew_the_stream_and_the_third_in_a_row_ends_the_trust() {
    let mut now = Instant::now();
    let mut starts = StartEvents::default();
    let mut miss = |starts: &mut StartEvents| {
        let id = ContainerId::from("a");
        starts.called(&id);
        starts.answered(&id, true, now);
        now += LIMIT;
        starts.check(now)
    };
    assert_eq!(miss(&mut starts), Some(StreamVerdict::Renew));
    assert_eq!(miss(&mut starts), Some(StreamVerdict::Renew));
    assert_eq!(miss(&mut starts), Some(StreamVerdict::Distrust));
    assert_eq!(miss(&mut starts), Some(StreamVerdict::Renew));
    starts.called(&ContainerId::from("b"));
    starts.heard("b");
    assert_eq!(miss(&mut starts), Some(StreamVerdict::Renew));
    assert_eq!(
        miss(&mut starts),
        Some(StreamVerdict::Renew),
        "an event between them counts"
    );
}
