//! Courses of pings on a network that the test invents.

use proptest::prelude::*;

use super::*;

const MS: Duration = Duration::from_millis(1);

fn key() -> SessionKey {
    SessionKey::new(42)
}

fn run(options: PingOptions) -> PingRun {
    PingRun::new(options, key(), Duration::ZERO)
}

fn counted(count: u64) -> PingOptions {
    PingOptions {
        count: Some(count),
        ..PingOptions::default()
    }
}

fn data(index: u64, sent: Duration) -> Vec<u8> {
    let mut data = Vec::new();
    key().write(Stamp { index, sent }, 56, &mut data);
    data
}

/// Sends everything that is due.
fn send(run: &mut PingRun, now: Duration) -> Vec<u64> {
    let mut sent = Vec::new();
    while let PingAction::Send(index) = run.next(now) {
        run.on_sent(index, now);
        sent.push(index);
    }
    sent
}

fn answer(run: &mut PingRun, index: u64, sent: Duration, now: Duration) -> ReplyOutcome {
    run.on_reply(sequence_of(index), &data(index, sent), now)
}

#[test]
fn it_ends_with_the_last_answer() {
    let mut run = run(counted(2));
    assert_eq!(send(&mut run, Duration::ZERO), [0]);
    assert_eq!(run.next(MS), PingAction::Wait(1000 * MS));
    let first = answer(&mut run, 0, Duration::ZERO, 3 * MS);
    let expected = ReplyOutcome::Reply {
        index: 0,
        rtt: Some(3 * MS),
        duplicate: false,
        reordered: false,
    };
    assert_eq!(first, expected);
    assert_eq!(send(&mut run, 1000 * MS), [1]);
    assert_eq!(run.next(1001 * MS), PingAction::Wait(2000 * MS));
    answer(&mut run, 1, 1000 * MS, 1002 * MS);
    assert_eq!(run.next(1002 * MS), PingAction::Done);
}

#[test]
fn without_any_answer_it_waits_for_the_timeout() {
    let mut run = run(counted(1));
    send(&mut run, Duration::ZERO);
    assert_eq!(run.next(9999 * MS), PingAction::Wait(10_000 * MS));
    assert_eq!(run.take_lost(9999 * MS), None);
    assert_eq!(run.take_lost(10_000 * MS), Some(0));
    assert_eq!(run.next(10_000 * MS), PingAction::Done);
}

#[test]
fn with_a_deadline_requests_are_sent_until_enough_are_answered() {
    let options = PingOptions {
        deadline: Some(5000 * MS),
        ..counted(2)
    };
    let mut run = run(options);
    for second in 0..3 {
        assert_eq!(send(&mut run, second * 1000 * MS), [u64::from(second)]);
    }
    answer(&mut run, 1, 1000 * MS, 2500 * MS);
    assert_eq!(run.next(2500 * MS), PingAction::Wait(3000 * MS));
    let mut late = PingRun::new(run.options.clone(), key(), Duration::ZERO);
    answer(&mut run, 2, 2000 * MS, 2600 * MS);
    assert_eq!(run.next(2600 * MS), PingAction::Done);
    send(&mut late, Duration::ZERO);
    assert_eq!(late.next(5000 * MS), PingAction::Done);
}

#[test]
fn late_doubled_and_reordered_answers_are_told_apart() {
    let mut run = run(counted(10));
    for index in 0..3 {
        send(&mut run, index * 1000 * MS);
    }
    let kinds = [(2, 2), (0, 0), (0, 0), (1, 1)].map(|(index, second)| {
        match answer(&mut run, index, second * 1000 * MS, 2500 * MS) {
            ReplyOutcome::Reply {
                duplicate,
                reordered,
                ..
            } => (duplicate, reordered),
            other => panic!("{other:?}"),
        }
    });
    let expected = [(false, false), (false, true), (true, false), (false, true)];
    assert_eq!(kinds, expected);
    let summary = run.summary();
    let counts = (summary.received, summary.duplicates, summary.reordered);
    assert_eq!(counts, (3, 1, 2));
}

#[test]
fn foreign_and_forged_answers_count_nowhere() {
    let mut run = run(counted(3));
    send(&mut run, Duration::ZERO);
    let mut forged = data(0, Duration::ZERO);
    forged[15] ^= 1;
    let mut other = Vec::new();
    let stamp = Stamp {
        index: 0,
        sent: Duration::ZERO,
    };
    SessionKey::new(43).write(stamp, 56, &mut other);
    let never_sent = data(1, Duration::ZERO);
    for (sequence, data) in [
        (1, forged.as_slice()),
        (1, &other),
        (2, &never_sent),
        (2, &data(0, Duration::ZERO)),
        (9, b""),
    ] {
        assert_eq!(run.on_reply(sequence, data, MS), ReplyOutcome::Foreign);
    }
    let whole = data(0, Duration::ZERO);
    assert_eq!(run.on_reply(1, &whole[..50], MS), ReplyOutcome::Damaged);
    let summary = run.summary();
    assert_eq!((summary.received, summary.damaged), (0, 1));
}

#[test]
fn a_flood_waits_for_the_answer_or_for_ten_milliseconds() {
    let options = PingOptions {
        flood: true,
        ..PingOptions::default()
    };
    let mut run = run(options);
    assert_eq!(send(&mut run, Duration::ZERO), [0]);
    answer(&mut run, 0, Duration::ZERO, MS);
    assert_eq!(send(&mut run, MS), [1]);
    assert_eq!(run.next(2 * MS), PingAction::Wait(11 * MS));
    assert_eq!(send(&mut run, 11 * MS), [2]);
}

#[test]
fn a_quoted_sequence_number_names_its_request() {
    let mut run = run(PingOptions {
        interval: Duration::ZERO,
        ..PingOptions::default()
    });
    for index in 0..70_000 {
        run.on_sent(index, Duration::ZERO);
    }
    assert_eq!(run.on_error(Some(sequence_of(69_999))), Some(69_999));
    assert_eq!(run.on_error(Some(sequence_of(10_000))), Some(10_000));
    assert_eq!(run.on_error(Some(sequence_of(1000))), Some(66_536));
    assert_eq!(run.on_error(None), None);
    assert_eq!(sequence_of(65_535), 0);
}

#[test]
fn requests_that_cannot_be_remembered_are_lost() {
    let mut run = run(PingOptions::default());
    for index in 0..=WINDOW {
        run.on_sent(index, Duration::ZERO);
    }
    assert_eq!(run.take_lost(MS), Some(0));
    assert_eq!(run.take_lost(MS), Some(1));
    assert_eq!(run.take_lost(MS), None);
    assert_eq!(
        answer(&mut run, 0, Duration::ZERO, MS),
        ReplyOutcome::Foreign
    );
}

proptest! {
    /// A network that loses, repeats and reorders answers: the counts are those of what it did.
    #[test]
    fn counts_are_those_of_the_network(fates in proptest::collection::vec(0_u32..4, 1..100)) {
        let mut run = run(PingOptions {
            count: Some(fates.len() as u64),
            interval: MS,
            ..PingOptions::default()
        });
        let (mut lost, mut doubled) = (0, 0);
        let mut delayed = Vec::new();
        for (index, fate) in (0_u64..).zip(&fates) {
            let now = MS * u32::try_from(index).unwrap();
            prop_assert_eq!(send(&mut run, now), [index]);
            match fate {
                0 => lost += 1,
                1 => delayed.push((index, now)),
                _ => {
                    answer(&mut run, index, now, now);
                }
            }
            if *fate == 3 {
                doubled += 1;
                answer(&mut run, index, now, now);
            }
        }
        let end = MS * 1000;
        let after_last = fates.iter().rposition(|fate| *fate >= 2);
        let reordered = delayed
            .iter()
            .filter(|(index, _)| after_last.is_some_and(|last| *index < last as u64))
            .count() as u64;
        for (index, sent) in delayed {
            let found = answer(&mut run, index, sent, end);
            let rtt = Some(end - sent);
            let matched = matches!(found, ReplyOutcome::Reply { rtt: found, .. } if found == rtt);
            prop_assert!(matched, "{:?}", found);
        }
        let summary = run.summary();
        prop_assert_eq!(summary.sent - summary.received, lost);
        prop_assert_eq!(summary.duplicates, doubled);
        prop_assert!(summary.reordered >= reordered, "{} {}", summary.reordered, reordered);
        let mut found = 0;
        while run.take_lost(Duration::from_secs(100)).is_some() {
            found += 1;
        }
        prop_assert_eq!(found, lost);
    }
}
