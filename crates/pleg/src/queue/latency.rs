//! Latency classes of pods, and the number of inspections in each that run at the same time.

use std::time::Duration;

/// Slots for inspections in their first second.
pub const FAST_SLOTS: usize = 16;
/// Slots for inspections that take longer. While all of them are taken, an inspection that becomes
/// slow is aborted, and is repeated when one of them is free.
pub(crate) const SLOW_SLOTS: usize = 32;
/// Slots for pods whose last inspection exceeded its deadline.
pub(crate) const HUNG_SLOTS: usize = 4;
/// All slots together.
pub const MAX_INSPECTIONS: usize = FAST_SLOTS + SLOW_SLOTS + HUNG_SLOTS;
/// An inspection that takes longer than this is slow.
pub(crate) const SLOW: Duration = Duration::from_secs(1);

/// The latency class of a pod, which determines the slots that its next inspection may take.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum LatencyClass {
    /// No inspection of it was slow.
    #[default]
    Fast,
    /// An inspection was slow and was aborted, and none has succeeded since.
    Slow,
    /// An inspection exceeded its deadline, and none has succeeded since.
    Hung,
}

impl LatencyClass {
    /// All classes, in the order in which free slots are given away.
    pub(super) const ALL: [Self; 3] = [Self::Fast, Self::Slow, Self::Hung];
}
