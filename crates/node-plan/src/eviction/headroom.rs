//! How much memory may still be taken.

use rubelet_api::resources::Bytes;

use super::{EvictionPolicy, EvictionSignal, ResourceLevels};

impl EvictionPolicy {
    /// The memory that may still be taken before the next threshold of the machine's memory is met, in bytes; `None` if
    /// there is none that is not met.
    #[must_use]
    pub fn memory_headroom(&self, levels: &ResourceLevels) -> Option<Bytes> {
        let level = levels.memory?;
        let thresholds = self.thresholds.iter();
        let of_memory = thresholds.filter(|one| one.signal == EvictionSignal::MemoryAvailable);
        let left =
            of_memory.filter_map(|one| level.available.checked_sub(one.value.of(level.capacity)));
        // At the value itself a threshold is not met yet.
        left.min().map(|left| left.saturating_add(1))
    }
}
