//! Tests of `pressure`.

use super::*;
use crate::eviction::FileSystem;

fn texts(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs
        .iter()
        .map(|&(key, value)| (key.to_owned(), value.to_owned()))
        .collect()
}

fn thresholds(hard: &[(&str, &str)], soft: &[(&str, &str)]) -> Thresholds {
    Thresholds::parse(&texts(hard), &texts(soft)).unwrap()
}

fn file_system(bytes: (u64, u64), inodes: (u64, u64)) -> FileSystem {
    let level = |(available, capacity)| ResourceLevel {
        available,
        capacity,
    };
    FileSystem {
        bytes: level(bytes),
        inodes: level(inodes),
    }
}

#[test]
fn thresholds_are_amounts_or_shares_and_the_ends_switch_them_off() {
    let read = thresholds(
        &[
            ("memory.available", "100Mi"),
            ("nodefs.available", "10%"),
            ("nodefs.inodesFree", "0%"),
            ("imagefs.available", "100%"),
            ("containerfs.available", "15%"),
        ],
        &[("pid.available", "1k")],
    );
    let hard: Vec<_> = read.hard.into_iter().collect();
    assert_eq!(
        hard,
        [
            (
                EvictionSignal::MemoryAvailable,
                ThresholdValue::Absolute(100 << 20)
            ),
            (EvictionSignal::NodefsAvailable, ThresholdValue::Share(0.1)),
        ]
    );
    assert_eq!(
        read.soft[&EvictionSignal::PidAvailable],
        ThresholdValue::Absolute(1000)
    );
    let wrong = Thresholds::parse(&texts(&[("memory.available", "much")]), &texts(&[]));
    assert_eq!(
        wrong.unwrap_err().to_string(),
        "memory.available: \"much\" is neither a quantity nor a percentage"
    );
}

#[test]
fn each_kind_of_shortage_has_its_condition() {
    let thresholds = thresholds(
        &[
            ("memory.available", "100"),
            ("nodefs.available", "10%"),
            ("imagefs.inodesFree", "5%"),
        ],
        &[("pid.available", "10")],
    );
    let level = |available, capacity| {
        Some(ResourceLevel {
            available,
            capacity,
        })
    };
    let plenty = ResourceLevels {
        memory: level(100, 1000),
        nodefs: Some(file_system((100, 1000), (0, 0))),
        imagefs: Some(file_system((0, 0), (50, 1000))),
        pids: level(10, 100),
        ..ResourceLevels::default()
    };
    let none = Pressure::default();
    for (what, levels, expected) in [
        ("exactly the threshold is enough", plenty, none),
        (
            "memory",
            ResourceLevels {
                memory: level(99, 1000),
                ..plenty
            },
            Pressure {
                memory: true,
                ..none
            },
        ),
        (
            "bytes",
            ResourceLevels {
                nodefs: Some(file_system((99, 1000), (0, 0))),
                ..plenty
            },
            Pressure { disk: true, ..none },
        ),
        (
            "inodes",
            ResourceLevels {
                imagefs: Some(file_system((0, 0), (49, 1000))),
                ..plenty
            },
            Pressure { disk: true, ..none },
        ),
        (
            "processes",
            ResourceLevels {
                pids: level(9, 100),
                ..plenty
            },
            Pressure { pid: true, ..none },
        ),
        ("nothing is known", ResourceLevels::default(), none),
    ] {
        let mut memory = PressureTracker::default();
        let found = memory.observe(&thresholds, &levels, Duration::ZERO, Duration::ZERO);
        assert_eq!(found, expected, "{what}");
    }
}

#[test]
fn a_shortage_shows_until_it_is_over_for_the_whole_transition_period() {
    let thresholds = thresholds(&[("memory.available", "100")], &[]);
    let mut memory = PressureTracker::default();
    let mut at = |seconds, available| {
        let levels = ResourceLevels {
            memory: Some(ResourceLevel {
                available,
                capacity: 1000,
            }),
            ..ResourceLevels::default()
        };
        let (period, at) = (Duration::from_secs(300), Duration::from_secs(seconds));
        memory.observe(&thresholds, &levels, period, at).memory
    };
    let seen = [
        at(0, 500),
        at(10, 50),
        at(20, 500),
        at(100, 50),
        at(399, 500),
        at(400, 500),
    ];
    assert_eq!(seen, [false, true, true, true, true, false]);
}
