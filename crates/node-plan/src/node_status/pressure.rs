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
    /// How many bytes, inodes or processes.
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

/// A threshold that cannot be parsed.
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

/// The measured levels. `None` could not be measured and counts neither way.
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
    /// Takes the levels measured at `at`, a time that only goes forward, and returns what runs
    /// short now or did so less than `transition` ago.
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
                // `seen == at`: a transition period of 0 must not hide a present shortage.
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
mod tests;
