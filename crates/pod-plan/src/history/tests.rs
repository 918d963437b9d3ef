//! Tables of ends: which are kept, and whether somebody stopped the instance.

use super::*;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn end(number: u32, second: i64) -> Termination {
    Termination {
        id: format!("c{number}").into(),
        restart_count: number,
        started_at: None,
        finished_at: at(second),
        exit_code: 1,
        reason: "Error".into(),
        message: "".into(),
        stopped_because: "".into(),
        log: Vec::new(),
    }
}

fn kept(history: &History) -> Vec<u32> {
    let ends = &history.containers["app"].ends;
    ends.iter().map(|end| end.restart_count).collect()
}

#[test]
fn the_newest_ends_are_kept_in_order_whatever_order_they_are_noted_in() {
    for (noted, expected) in [
        (vec![1, 2, 3], vec![3, 2, 1]),
        (vec![3, 1, 2], vec![3, 2, 1]),
        (vec![2, 2, 2], vec![2]),
        (vec![1, 2, 3, 4, 5, 6, 7], vec![7, 6, 5, 4, 3]),
        (vec![7, 6, 5, 4, 3, 2, 1], vec![7, 6, 5, 4, 3]),
        (vec![7, 6, 5, 4, 3, 8, 1], vec![8, 7, 6, 5, 4]),
    ] {
        let mut history = History::default();
        for number in &noted {
            history.note_termination("app", end(*number, i64::from(*number)));
        }
        assert_eq!(kept(&history), expected, "{noted:?}");
    }
}

#[test]
fn an_end_is_lacking_until_it_is_noted_and_not_if_it_would_not_be_kept() {
    let mut history = History::default();
    assert!(history.lacks_termination("app", &"c1".into(), at(1)));
    for number in 3..=7 {
        history.note_termination("app", end(number, i64::from(number)));
    }
    for (id, second, lacking) in [
        ("c7", 7, false),
        ("c3", 3, false),
        ("c1", 1, false),
        ("other", 5, true),
        ("c8", 8, true),
    ] {
        assert_eq!(
            history.lacks_termination("app", &id.into(), at(second)),
            lacking,
            "{id}"
        );
    }
    assert!(history.lacks_termination("other", &"c1".into(), at(1)));
}

#[test]
fn an_instance_that_ended_before_it_was_to_be_stopped_ended_by_itself() {
    let mut history = History::default();
    history.note_killed("app", &"c1".into(), "it is unhealthy", at(10));
    history.note_killed("app", &"c1".into(), "the pod ends", at(12));
    for (name, id, second, why) in [
        ("app", "c1", 10, "it is unhealthy"),
        ("app", "c1", 40, "it is unhealthy"),
        ("app", "c1", 9, ""),
        ("app", "c2", 40, ""),
        ("other", "c1", 40, ""),
    ] {
        assert_eq!(history.stopped_because(name, &id.into(), at(second)), why);
    }
}

#[test]
fn a_reason_that_comes_late_replaces_the_one_before() {
    let mut history = History::default();
    history.note_termination("app", end(1, 1));
    history.correct_termination("app", &"c2".into(), "OOMKilled");
    assert_eq!(&*history.containers["app"].ends[0].reason, "Error");
    history.correct_termination("app", &"c1".into(), "OOMKilled");
    assert_eq!(&*history.containers["app"].ends[0].reason, "OOMKilled");
    // The runtime does not know.
    history.correct_termination("app", &"c1".into(), "Error");
    assert_eq!(&*history.containers["app"].ends[0].reason, "OOMKilled");
}

#[test]
fn a_wait_ends_in_time_and_not_hours_late_when_the_clock_was_set_back() {
    let wait = Duration::from_secs(40);
    let until = Some(at(10_040));
    for (now, expected) in [
        (10_000, until),
        (10_039, until),
        (10_040, None),
        (99_999, None),
        // The clock of the runtime is a little ahead.
        (9_999, until),
        // The clock was set back.
        (9_998, None),
        (6_400, None),
    ] {
        assert_eq!(backoff_end(at(10_000), wait, at(now)), expected, "{now}");
    }
}
