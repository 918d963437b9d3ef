//! CPU usage per second, from two readings of the total.

/// The previous reading of one object.
#[derive(Debug, Default)]
pub(crate) struct CpuRate(Option<CpuSample>);

#[derive(Debug, Clone, Copy)]
struct CpuSample {
    at: i64,
    usage: u64,
}

impl CpuRate {
    /// CPU nanoseconds per second since the previous reading, which this one replaces. The first
    /// reading gives 0, as in containerd; a clock that did not advance gives `None`.
    pub(crate) fn next(&mut self, at: i64, usage: u64) -> Option<u64> {
        let Some(last) = self.0 else {
            self.0 = Some(CpuSample { at, usage });
            return Some(0);
        };
        let elapsed = u64::try_from(at.checked_sub(last.at)?).ok()?;
        if elapsed == 0 {
            return None;
        }
        self.0 = Some(CpuSample { at, usage });
        let used = u128::from(usage.saturating_sub(last.usage));
        u64::try_from(used * 1_000_000_000 / u128::from(elapsed)).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn use_per_second_needs_two_readings() {
        let mut rate = CpuRate::default();
        let second = 1_000_000_000;
        assert_eq!(rate.next(second, 100), Some(0));
        assert_eq!(rate.next(second, 100), None);
        assert_eq!(
            rate.next(3 * second, 100 + 3_000_000_000),
            Some(1_500_000_000)
        );
        // A clock that was set back.
        assert_eq!(rate.next(second, 5_000_000_000), None);
    }
}
