//! Tests of `wheel`.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

#[derive(Debug, Clone)]
enum Op {
    Set(u32, u64),
    Cancel(u32),
    Advance(u64),
    ToNext,
}

fn op() -> impl Strategy<Value = Op> {
    let ticks = || {
        prop_oneof![
            0..200_u64,
            0..100_000_u64,
            Just(64),
            Just(4096),
            Just(1 << 33)
        ]
    };
    prop_oneof![
        4 => (0..20_u32, ticks()).prop_map(|(key, after)| Op::Set(key, after)),
        1 => (0..25_u32).prop_map(Op::Cancel),
        2 => (0..50_000_u64).prop_map(Op::Advance),
        3 => Just(Op::ToNext),
    ]
}

proptest! {
    #[test]
    fn timers_fire_when_they_are_due_and_once(ops in prop::collection::vec(op(), 1..200)) {
        let mut wheel = Wheel::new();
        let mut model = BTreeMap::new();
        let mut now = 0;
        for op in ops {
            let to = match op {
                Op::Set(key, after) => {
                    wheel.set(key, now + after);
                    model.insert(key, (now + after).max(now + 1));
                    now
                }
                Op::Cancel(key) => {
                    wheel.cancel(key);
                    model.remove(&key);
                    now
                }
                Op::Advance(by) => now + by,
                Op::ToNext => wheel.next().unwrap_or(now),
            };
            let earliest = model.values().min().copied();
            prop_assert_eq!(wheel.next().is_some(), earliest.is_some());
            if let (Some(next), Some(earliest)) = (wheel.next(), earliest) {
                prop_assert!(now < next && next <= earliest);
            }
            let mut fired = Vec::new();
            wheel.advance(to, &mut fired);
            now = to;
            fired.sort_unstable();
            let expected: Vec<u32> =
                model.extract_if(.., |_, due| *due <= now).map(|(key, _)| key).collect();
            prop_assert_eq!(fired, expected);
        }
    }
}

#[test]
fn a_timer_of_ten_seconds_costs_little_more_than_two_wake_ups() {
    let mut wheel = Wheel::new();
    let (mut now, mut wakes) = (0, 0);
    let mut due = Vec::new();
    for round in 1..=100 {
        wheel.set(0, now + 1000);
        while due.is_empty() {
            now = wheel.next().unwrap();
            wheel.advance(now, &mut due);
            wakes += 1;
        }
        assert_eq!(now, round * 1000);
        due.clear();
    }
    assert!(wakes <= 220, "{wakes}");
    assert_eq!(wheel.next(), None);
}

#[test]
fn what_is_due_after_the_end_of_time_waits_and_can_be_taken_back() {
    let mut wheel = Wheel::new();
    wheel.set(7, u64::MAX);
    wheel.advance(1 << 41, &mut Vec::new());
    assert!(wheel.next().is_some());
    wheel.cancel(7);
    wheel.cancel(7);
    assert_eq!(wheel.next(), None);
}
