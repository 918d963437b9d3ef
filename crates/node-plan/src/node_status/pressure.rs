//! Eviction thresholds, and whether memory, disk or processes run short. Nothing is evicted here:
//! the thresholds decide about conditions of the node and about what is kept from pods.
//!
//! Source of the rules: `pkg/kubelet/eviction` of Kubernetes 1.36.

use std::{collections::BTreeMap, time::Duration};

use rubelet_api::{
    quantity::{Quantity, QuantityError},
    resources::Bytes,
};

/// What can run short.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Signal {
    /// `memory.available`: what is free or can be taken back at once.
    MemoryAvailable,
    /// `nodefs.available`: the file system of volumes and logs.
    NodefsAvailable,
    /// `nodefs.inodesFree`.
    NodefsInodesFree,
    /// `imagefs.available`: the file system of the runtime's images.
    ImagefsAvailable,
    /// `imagefs.inodesFree`.
    ImagefsInodesFree,
    /// `pid.available`: processes and threads.
    PidAvailable,
}

impl Signal {
    const ALL: [(&'static str, Self); 6] = [
        ("memory.available", Self::MemoryAvailable),
        ("nodefs.available", Self::NodefsAvailable),
        ("nodefs.inodesFree", Self::NodefsInodesFree),
        ("imagefs.available", Self::ImagefsAvailable),
        ("imagefs.inodesFree", Self::ImagefsInodesFree),
        ("pid.available", Self::PidAvailable),
    ];

    fn from_name(name: &str) -> Option<Self> {
        let (_, signal) = Self::ALL.iter().find(|(known, _)| *known == name)?;
        Some(*signal)
    }

    fn condition(self) -> usize {
        match self {
            Self::MemoryAvailable => MEMORY,
            Self::PidAvailable => PID,
            _ => DISK,
        }
    }
}

const MEMORY: usize = 0;
const DISK: usize = 1;
const PID: usize = 2;

/// How little is too little.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Amount {
    /// So many bytes, inodes or processes.
    Absolute(u64),
    /// So large a part of all there is.
    Share(f32),
}

impl Amount {
    /// The amount in units, of a node that has `capacity` of them.
    #[must_use]
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        clippy::cast_sign_loss,
        reason = "upstream computes shares in floating point; another way would round differently"
    )]
    pub fn of(self, capacity: u64) -> u64 {
        match self {
            Self::Absolute(amount) => amount,
            Self::Share(share) => (capacity as f64 * f64::from(share)) as u64,
        }
    }
}

/// Thresholds by what they are about.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Thresholds {
    /// `evictionHard`.
    pub hard: BTreeMap<Signal, Amount>,
    /// `evictionSoft`: these count for conditions too, without their grace period.
    pub soft: BTreeMap<Signal, Amount>,
}

/// A threshold that is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{signal}: {text:?} is neither a quantity nor a percentage")]
pub struct ThresholdError {
    /// Which one.
    pub signal: String,
    /// What was given.
    pub text: String,
    /// What a quantity would need.
    #[source]
    pub source: QuantityError,
}

impl Thresholds {
    /// Reads `evictionHard` and `evictionSoft`. `0%` and `100%` switch a signal off. Signals of a
    /// separate file system of containers and of the memory of all pods together are left out: the
    /// node's own file systems and memory stand for them.
    ///
    /// # Errors
    /// One of them is neither a quantity nor a percentage.
    pub fn parse(
        hard: &BTreeMap<String, String>,
        soft: &BTreeMap<String, String>,
    ) -> Result<Self, ThresholdError> {
        Ok(Self {
            hard: amounts(hard)?,
            soft: amounts(soft)?,
        })
    }

    fn met(&self, signal: Signal, level: Level) -> bool {
        let below = |list: &BTreeMap<Signal, Amount>| {
            list.get(&signal)
                .is_some_and(|amount| level.available < amount.of(level.capacity))
        };
        below(&self.hard) || below(&self.soft)
    }
}

fn amounts(list: &BTreeMap<String, String>) -> Result<BTreeMap<Signal, Amount>, ThresholdError> {
    let mut amounts = BTreeMap::new();
    for (name, text) in list {
        let Some(signal) = Signal::from_name(name) else {
            continue;
        };
        let amount = match text.strip_suffix('%').map(str::parse::<f32>) {
            Some(Ok(percent)) if percent <= 0.0 || percent >= 100.0 => continue,
            Some(Ok(percent)) => Amount::Share(percent / 100.0),
            _ => match Quantity::parse(text) {
                Ok(quantity) => Amount::Absolute(quantity.units()),
                Err(source) => {
                    return Err(ThresholdError {
                        signal: name.clone(),
                        text: text.clone(),
                        source,
                    });
                }
            },
        };
        amounts.insert(signal, amount);
    }
    Ok(amounts)
}

/// How much of something there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Level {
    /// What can still be used.
    pub available: u64,
    /// All there is.
    pub capacity: u64,
}

/// One file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FileSystem {
    /// Bytes.
    pub bytes: Level,
    /// Inodes; all of them 0 where the file system does not count them.
    pub inodes: Level,
}

impl FileSystem {
    /// Bytes in all.
    #[must_use]
    pub fn capacity(&self) -> Bytes {
        self.bytes.capacity
    }
}

/// What was measured. What can't be measured says nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Levels {
    /// Memory: all but the working set is available.
    pub memory: Option<Level>,
    /// The file system of volumes and logs.
    pub nodefs: Option<FileSystem>,
    /// The file system of images.
    pub imagefs: Option<FileSystem>,
    /// Processes and threads.
    pub pids: Option<Level>,
}

impl Levels {
    fn each(&self) -> impl Iterator<Item = (Signal, Level)> {
        let bytes = |fs: &Option<FileSystem>| fs.map(|fs| fs.bytes);
        let inodes = |fs: &Option<FileSystem>| fs.map(|fs| fs.inodes);
        [
            (Signal::MemoryAvailable, self.memory),
            (Signal::NodefsAvailable, bytes(&self.nodefs)),
            (Signal::NodefsInodesFree, inodes(&self.nodefs)),
            (Signal::ImagefsAvailable, bytes(&self.imagefs)),
            (Signal::ImagefsInodesFree, inodes(&self.imagefs)),
            (Signal::PidAvailable, self.pids),
        ]
        .into_iter()
        .filter_map(|(signal, level)| Some((signal, level?)))
    }
}

/// What runs short.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Pressure {
    /// Memory.
    pub memory: bool,
    /// Bytes or inodes of a file system.
    pub disk: bool,
    /// Processes.
    pub pid: bool,
}

/// When each kind of shortage was last seen.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PressureMemory {
    last_seen: [Option<Duration>; 3],
}

impl PressureMemory {
    /// Takes in what was measured at `at`, a time that only goes forward, and says what runs short
    /// now or did so less than `transition` ago.
    pub fn observe(
        &mut self,
        thresholds: &Thresholds,
        levels: &Levels,
        transition: Duration,
        at: Duration,
    ) -> Pressure {
        for (signal, level) in levels.each() {
            if thresholds.met(signal, level) {
                self.last_seen[signal.condition()] = Some(at);
            }
        }
        let under = |which: usize| {
            self.last_seen[which]
                .is_some_and(|seen| seen == at || at.saturating_sub(seen) < transition)
        };
        Pressure {
            memory: under(MEMORY),
            disk: under(DISK),
            pid: under(PID),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let level = |(available, capacity)| Level {
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
                (Signal::MemoryAvailable, Amount::Absolute(100 << 20)),
                (Signal::NodefsAvailable, Amount::Share(0.1)),
            ]
        );
        assert_eq!(read.soft[&Signal::PidAvailable], Amount::Absolute(1000));
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
            Some(Level {
                available,
                capacity,
            })
        };
        let plenty = Levels {
            memory: level(100, 1000),
            nodefs: Some(file_system((100, 1000), (0, 0))),
            imagefs: Some(file_system((0, 0), (50, 1000))),
            pids: level(10, 100),
        };
        let none = Pressure::default();
        for (what, levels, expected) in [
            ("exactly the threshold is enough", plenty, none),
            (
                "memory",
                Levels {
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
                Levels {
                    nodefs: Some(file_system((99, 1000), (0, 0))),
                    ..plenty
                },
                Pressure { disk: true, ..none },
            ),
            (
                "inodes",
                Levels {
                    imagefs: Some(file_system((0, 0), (49, 1000))),
                    ..plenty
                },
                Pressure { disk: true, ..none },
            ),
            (
                "processes",
                Levels {
                    pids: level(9, 100),
                    ..plenty
                },
                Pressure { pid: true, ..none },
            ),
            ("nothing is known", Levels::default(), none),
        ] {
            let mut memory = PressureMemory::default();
            let found = memory.observe(&thresholds, &levels, Duration::ZERO, Duration::ZERO);
            assert_eq!(found, expected, "{what}");
        }
    }

    #[test]
    fn a_shortage_shows_until_it_is_over_for_the_whole_transition_period() {
        let thresholds = thresholds(&[("memory.available", "100")], &[]);
        let mut memory = PressureMemory::default();
        let mut at = |seconds, available| {
            let levels = Levels {
                memory: Some(Level {
                    available,
                    capacity: 1000,
                }),
                ..Levels::default()
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
}
