//! The hard eviction thresholds, by which the node's allocatable resources are less than its
//! capacity.

use std::collections::BTreeMap;

use crate::eviction::{EvictionSignal, ThresholdError, ThresholdValue};

/// `evictionHard` by signal.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct HardThresholds {
    values: BTreeMap<EvictionSignal, ThresholdValue>,
}

impl HardThresholds {
    /// Parses `evictionHard`. `0%` and `100%` disable a signal; unknown signals are ignored.
    ///
    /// # Errors
    /// A value is neither a quantity nor a percentage.
    pub fn parse(hard: &BTreeMap<String, String>) -> Result<Self, ThresholdError> {
        let mut values = BTreeMap::new();
        for (name, text) in hard {
            let value = ThresholdValue::parse(name, text)?;
            if let Some(signal) = EvictionSignal::from_name(name).filter(|_| !value.is_off()) {
                values.insert(signal, value);
            }
        }
        Ok(Self { values })
    }

    /// The amount that is kept free of a capacity; 0 without a threshold.
    #[must_use]
    pub fn of(&self, signal: EvictionSignal, capacity: u64) -> u64 {
        self.values
            .get(&signal)
            .map_or(0, |value| value.of(capacity))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_absolute_or_shares_and_the_ends_switch_them_off() {
        let texts = [
            ("memory.available", "100Mi"),
            ("nodefs.available", "10%"),
            ("nodefs.inodesFree", "0%"),
            ("imagefs.available", "100%"),
        ];
        let texts = texts.map(|(name, text)| (name.to_owned(), text.to_owned()));
        let read = HardThresholds::parse(&texts.into()).unwrap();
        for (signal, kept) in [
            (EvictionSignal::MemoryAvailable, 100 << 20),
            (EvictionSignal::NodefsAvailable, 100),
            (EvictionSignal::NodefsInodesFree, 0),
            (EvictionSignal::ImagefsAvailable, 0),
            (EvictionSignal::PidAvailable, 0),
        ] {
            assert_eq!(read.of(signal, 1000), kept, "{signal:?}");
        }
        let wrong = [("memory.available".to_owned(), "much".to_owned())];
        assert_eq!(
            HardThresholds::parse(&wrong.into())
                .unwrap_err()
                .to_string(),
            "memory.available: \"much\" is neither a quantity nor a percentage"
        );
    }
}
