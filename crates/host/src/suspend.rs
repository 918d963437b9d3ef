//! The time that the machine was suspended.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Total time for which the machine was suspended since boot: the difference of two kernel clocks,
/// of which one continues during suspend. They are read one after the other, so the value may be
/// off by the time in between.
#[must_use]
pub fn asleep() -> Duration {
    let [with, without] = [ClockId::Boottime, ClockId::Monotonic].map(|clock| {
        let time = clock_gettime(clock);
        let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
        Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or_default())
    });
    with.saturating_sub(without)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_that_is_awake_was_not_suspended_meanwhile() {
        let before = asleep();
        let difference = asleep().abs_diff(before);
        assert!(difference < Duration::from_millis(100), "{difference:?}");
    }
}
