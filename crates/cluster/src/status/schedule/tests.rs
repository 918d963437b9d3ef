//! Tests of `schedule`.

use super::*;

fn uid(name: &str) -> PodUid {
    name.into()
}

fn drain(schedule: &mut Schedule, now: Instant) -> Vec<String> {
    std::iter::from_fn(|| schedule.next(now))
        .map(|uid| uid.to_string())
        .collect()
}

#[tokio::test(start_paused = true)]
async fn pods_go_in_the_order_of_their_news_and_each_once_at_a_time() {
    let now = Instant::now();
    let mut schedule = Schedule::new(2);
    for name in ["a", "b", "a", "c", "b"] {
        schedule.changed(&uid(name));
    }
    assert_eq!(drain(&mut schedule, now), ["a", "b"]);
    // News of a pod whose call is under way makes one more turn, behind those who wait.
    schedule.changed(&uid("a"));
    schedule.changed(&uid("a"));
    assert_eq!(drain(&mut schedule, now), [""; 0]);
    schedule.ended(&uid("a"), CallOutcome::Done, now);
    assert_eq!(drain(&mut schedule, now), ["c"]);
    schedule.ended(&uid("b"), CallOutcome::Done, now);
    schedule.ended(&uid("c"), CallOutcome::Done, now);
    assert_eq!(drain(&mut schedule, now), ["a"]);
    schedule.ended(&uid("a"), CallOutcome::Done, now);
    assert_eq!(
        (drain(&mut schedule, now), schedule.wake_at()),
        (vec![], None)
    );
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_fails_waits_longer_each_time_and_news_of_it_goes_at_once() {
    let mut now = Instant::now();
    let mut schedule = Schedule::new(4);
    schedule.changed(&uid("a"));
    let mut waits = Vec::new();
    for _ in 0..9 {
        assert_eq!(drain(&mut schedule, now), ["a"]);
        schedule.ended(&uid("a"), CallOutcome::Later(None), now);
        let next = schedule.wake_at().unwrap();
        waits.push((next - now).as_millis());
        now = next;
    }
    assert_eq!(
        waits,
        [200, 400, 800, 1600, 3200, 6400, 12_800, 25_600, 30_000]
    );

    assert_eq!(drain(&mut schedule, now), ["a"]);
    schedule.ended(&uid("a"), CallOutcome::Refused, now);
    schedule.changed(&uid("a"));
    assert_eq!(drain(&mut schedule, now), ["a"]);
    let asked = Duration::from_secs(90);
    schedule.ended(&uid("a"), CallOutcome::Later(Some(asked)), now);
    assert_eq!(schedule.wake_at(), Some(now + asked));
}

#[tokio::test(start_paused = true)]
async fn while_the_api_server_is_away_one_call_looks_for_it_and_then_all_go() {
    let mut now = Instant::now();
    let mut schedule = Schedule::new(3);
    for name in ["a", "b", "c", "d"] {
        schedule.changed(&uid(name));
    }
    for name in drain(&mut schedule, now) {
        schedule.ended(&uid(&name), CallOutcome::Away, now);
    }
    assert!(schedule.is_away());
    let mut waits = Vec::new();
    for _ in 0..8 {
        let next = schedule.wake_at().unwrap();
        waits.push((next - now).as_millis());
        now = next;
        let tried = drain(&mut schedule, now);
        assert_eq!(tried.len(), 1);
        schedule.ended(&uid(&tried[0]), CallOutcome::Away, now);
    }
    assert_eq!(waits, [100, 200, 400, 800, 1600, 3200, 5000, 5000]);
    // Its watch is heard again: nobody waits for the timer.
    schedule.may_be_back(now);
    let tried = drain(&mut schedule, now);
    assert_eq!(tried.len(), 1);
    assert!(schedule.answered());
    schedule.ended(&uid(&tried[0]), CallOutcome::Done, now);
    assert_eq!(drain(&mut schedule, now).len(), 3);
}

#[tokio::test(start_paused = true)]
async fn pods_that_are_no_more_leave_nothing_behind() {
    let now = Instant::now();
    let mut schedule = Schedule::new(1);
    for name in ["a", "b", "c"] {
        schedule.changed(&uid(name));
    }
    assert_eq!(schedule.next(now), Some(uid("a")));
    schedule.ended(&uid("a"), CallOutcome::Later(None), now);
    assert_eq!(schedule.next(now), Some(uid("b")));
    schedule.retain(|_| false);
    assert_eq!(schedule.wake_at(), None);
    schedule.ended(&uid("b"), CallOutcome::Later(None), now);
    schedule.retain(|_| false);
    assert_eq!((schedule.next(now), schedule.wake_at()), (None, None));
}
