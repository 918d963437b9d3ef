//! Eviction thresholds, and the pressure on memory, disk and PIDs. This module evicts nothing: the
//! thresholds determine conditions of the node and its allocatable resources.
//!
//! Source of the rules: `pkg/kubelet/eviction` of Kubernetes 1.36.

use std::{collections::BTreeMap, time::Duration};

use rubelet_api::{
    quantity::{Quantity, QuantityError},
    resources::Bytes,
};

/// A signal of an eviction threshold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum EvictionSignal {
    /// `memory.available`: memory that is free or can be reclaimed at once.
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

impl EvictionSignal {
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

/// The value of an eviction threshold.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ThresholdValue {
    /// A number of bytes, inodes or processes.
    Absolute(u64),
    /// A share of the capacity.
    Share(f32),
}

impl ThresholdValue {
    /// The absolute value for a capacity.
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

/// Eviction thresholds by signal.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Thresholds {
    /// `evictionHard`.
    pub hard: BTreeMap<EvictionSignal, ThresholdValue>,
    /// `evictionSoft`: they count for conditions as well, without their grace period.
    pub soft: BTreeMap<EvictionSignal, ThresholdValue>,
}

/// A threshold that cannot be parsed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{signal}: {text:?} is neither a quantity nor a percentage")]
pub struct ThresholdError {
    /// The signal.
    pub signal: String,
    /// The configured text.
    pub text: String,
    /// The error of parsing it as a quantity.
    #[source]
    pub source: QuantityError,
}

impl Thresholds {
    /// Parses `evictionHard` and `evictionSoft`. `0%` and `100%` disable a signal. `containerfs`
    /// and `allocatableMemory` signals are ignored: the node's file systems and memory stand for
    /// them.
    ///
    /// # Errors
    /// A value is neither a quantity nor a percentage.
    pub fn parse(
        hard: &BTreeMap<String, String>,
        soft: &BTreeMap<String, String>,
    ) -> Result<Self, ThresholdError> {
        Ok(Self {
            hard: amounts(hard)?,
            soft: amounts(soft)?,
        })
    }

    fn met(&self, signal: EvictionSignal, level: ResourceLevel) -> bool {
        let below = |list: &BTreeMap<EvictionSignal, ThresholdValue>| {
            list.get(&signal)
                .is_some_and(|amount| level.available < amount.of(level.capacity))
        };
        below(&self.hard) || below(&self.soft)
    }
}

fn amounts(
    list: &BTreeMap<String, String>,
) -> Result<BTreeMap<EvictionSignal, ThresholdValue>, ThresholdError> {
    let mut amounts = BTreeMap::new();
    for (name, text) in list {
        let Some(signal) = EvictionSignal::from_name(name) else {
            continue;
        };
        let amount = match text.strip_suffix('%').map(str::parse::<f32>) {
            Some(Ok(percent)) if percent <= 0.0 || percent >= 100.0 => continue,
            Some(Ok(percent)) => ThresholdValue::Share(percent / 100.0),
            _ => match Quantity::parse(text) {
                Ok(quantity) => ThresholdValue::Absolute(quantity.units()),
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

/// The level of a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ResourceLevel {
    /// The available amount.
    pub available: u64,
    /// The capacity.
    pub capacity: u64,
}

/// One file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FileSystem {
    /// Bytes.
    pub bytes: ResourceLevel,
    /// Inodes; a capacity of 0 if the file system does not count them.
    pub inodes: ResourceLevel,
}

impl FileSystem {
    /// The capacity in bytes.
    #[must_use]
    pub fn capacity(&self) -> Bytes {
        self.bytes.capacity
    }
}

/// The measured levels. `None`: could not be measured, which neither causes nor ends pressure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ResourceLevels {
    /// Memory: everything except the working set is available.
    pub memory: Option<ResourceLevel>,
    /// The file system of volumes and logs.
    pub nodefs: Option<FileSystem>,
    /// The file system of images.
    pub imagefs: Option<FileSystem>,
    /// Processes and threads.
    pub pids: Option<ResourceLevel>,
}

impl ResourceLevels {
    fn each(&self) -> impl Iterator<Item = (EvictionSignal, ResourceLevel)> {
        let bytes = |fs: &Option<FileSystem>| fs.map(|fs| fs.bytes);
        let inodes = |fs: &Option<FileSystem>| fs.map(|fs| fs.inodes);
        [
            (EvictionSignal::MemoryAvailable, self.memory),
            (EvictionSignal::NodefsAvailable, bytes(&self.nodefs)),
            (EvictionSignal::NodefsInodesFree, inodes(&self.nodefs)),
            (EvictionSignal::ImagefsAvailable, bytes(&self.imagefs)),
            (EvictionSignal::ImagefsInodesFree, inodes(&self.imagefs)),
            (EvictionSignal::PidAvailable, self.pids),
        ]
        .into_iter()
        .filter_map(|(signal, level)| Some((signal, level?)))
    }
}

/// The resources under pressure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Pressure {
    /// Memory.
    pub memory: bool,
    /// Bytes or inodes of a file system.
    pub disk: bool,
    /// Processes.
    pub pid: bool,
}

/// The last time of each kind of pressure.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PressureTracker {
    last_seen: [Option<Duration>; 3],
}

impl PressureTracker {
    /// Takes the levels measured at the monotonic time `at`, and returns the pressure now or within
    /// the last `transition`.
    pub fn observe(
        &mut self,
        thresholds: &Thresholds,
        levels: &ResourceLevels,
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
