//! Tests of `start_event_watchdog`.

use super::*;

#[test]
fn an_event_may_come_before_or_after_the_response() {
    let now = Instant::now();
    let (early, late) = (ContainerId::from("early"), ContainerId::from("late"));
    let mut starts = StartEventWatchdog::default();
    starts.called(&early);
    starts.called(&late);
    starts.event_received("early");
    assert!(!starts.answered(&early, true, now), "it has come");
    assert!(starts.answered(&late, true, now));
    assert_eq!(starts.check(now + LIMIT / 2), None);
    starts.event_received("late");
    assert_eq!(starts.next(), None);
    assert_eq!(starts.check(now + LIMIT), None);
}

#[test]
fn a_failed_start_has_no_event() {
    let mut starts = StartEventWatchdog::default();
    let id = ContainerId::from("a");
    starts.called(&id);
    assert!(!starts.answered(&id, false, Instant::now()));
    assert_eq!(starts.next(), None);
}

#[test]
fn missing_events_reopen_the_stream_and_the_third_in_a_row_leads_to_polling() {
    let mut now = Instant::now();
    let mut starts = StartEventWatchdog::default();
    let mut miss = |starts: &mut StartEventWatchdog| {
        let id = ContainerId::from("a");
        starts.called(&id);
        starts.answered(&id, true, now);
        now += LIMIT;
        starts.check(now)
    };
    assert_eq!(miss(&mut starts), Some(StreamAction::Reconnect));
    assert_eq!(miss(&mut starts), Some(StreamAction::Reconnect));
    assert_eq!(miss(&mut starts), Some(StreamAction::FallBackToPolling));
    assert_eq!(miss(&mut starts), Some(StreamAction::Reconnect));
    starts.called(&ContainerId::from("b"));
    starts.event_received("b");
    assert_eq!(miss(&mut starts), Some(StreamAction::Reconnect));
    assert_eq!(
        miss(&mut starts),
        Some(StreamAction::Reconnect),
        "an event between them counts"
    );
}
