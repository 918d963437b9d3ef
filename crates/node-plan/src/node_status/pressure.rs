//! The pressure conditions of the node, from eviction thresholds and measured levels. This module
//! evicts nothing: the thresholds determine conditions of the node and its allocatable resources.
//!
//! Source of the rules: `pkg/kubelet/eviction` of Kubernetes 1.36.

use std::{collections::BTreeMap, time::Duration};

use crate::eviction::{
    EvictionSignal, LastShortages, Pressure, ResourceLevel, ResourceLevels, ThresholdError,
    ThresholdValue,
};

/// Eviction thresholds by signal.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Thresholds {
    /// `evictionHard`.
    pub hard: BTreeMap<EvictionSignal, ThresholdValue>,
    /// `evictionSoft`: they count for conditions as well, without their grace period.
    pub soft: BTreeMap<EvictionSignal, ThresholdValue>,
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
        let ignored = signal.thresholds_of().is_some()
            || signal == EvictionSignal::AllocatableMemoryAvailable;
        if ignored {
            continue;
        }
        let amount = ThresholdValue::parse(name, text)?;
        if !amount.is_off() {
            amounts.insert(signal, amount);
        }
    }
    Ok(amounts)
}

/// The last time of each kind of pressure.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PressureTracker {
    last: LastShortages,
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
        for signal in thresholds.hard.keys().chain(thresholds.soft.keys()) {
            if levels
                .of(*signal)
                .is_some_and(|level| thresholds.met(*signal, level))
            {
                self.last.saw(signal.condition(), at);
            }
        }
        self.last.pressure(transition, at)
    }
}

#[cfg(test)]
mod tests;
