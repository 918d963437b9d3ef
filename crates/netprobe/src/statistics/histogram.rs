//! A histogram of durations with buckets that grow with the value, so that percentiles of any number
//! of values need a fixed amount of memory.

use std::time::Duration;

/// Buckets between two powers of two: the error of a value is at most one part in so many.
const PARTS: u64 = 64;
const PART_BITS: u32 = PARTS.trailing_zeros();

/// Counts of durations, by nanoseconds.
#[derive(Debug, Clone, Default)]
pub(super) struct Histogram {
    // It grows with the largest value: 2,000 buckets reach beyond a minute.
    counts: Vec<u64>,
    total: u64,
}

impl Histogram {
    pub(super) fn add(&mut self, value: Duration) {
        let bucket = bucket(u64::try_from(value.as_nanos()).unwrap_or(u64::MAX));
        if bucket >= self.counts.len() {
            self.counts.resize(bucket + 1, 0);
        }
        self.counts[bucket] += 1;
        self.total += 1;
    }

    /// The smallest bucket's upper end that `percent` of the values do not exceed; zero without
    /// values.
    pub(super) fn percentile(&self, percent: u64) -> Duration {
        let wanted = (self.total * percent).div_ceil(100).max(1);
        let mut seen = 0;
        for (bucket, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= wanted {
                return Duration::from_nanos(upper_end(bucket));
            }
        }
        Duration::ZERO
    }
}

/// The bucket of a value. The first `PARTS` values have one each; then `PARTS` buckets lie between
/// two powers of two.
fn bucket(value: u64) -> usize {
    let shift = (u64::BITS - value.leading_zeros()).saturating_sub(PART_BITS + 1);
    let bucket = u64::from(shift) * PARTS + (value >> shift);
    usize::try_from(bucket).unwrap_or(usize::MAX)
}

/// The largest value of a bucket.
fn upper_end(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    let shift = (bucket / PARTS).saturating_sub(1);
    let first = bucket - shift * PARTS;
    // The last bucket of all ends at the largest number.
    (u128::from(first + 1) << shift)
        .saturating_sub(1)
        .try_into()
        .unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_bucket_holds_its_value_to_one_part_in_64(value: u64, shift in 0_u32..64) {
            let value = value >> shift;
            let end = upper_end(bucket(value));
            prop_assert!(end >= value);
            prop_assert!(end - value <= value / PARTS, "{value} {end}");
        }

        #[test]
        fn buckets_are_in_the_order_of_their_values(a: u64, b: u64) {
            prop_assert!(bucket(a.min(b)) <= bucket(a.max(b)));
        }

        #[test]
        fn a_percentile_is_that_of_the_sorted_values(
            mut values in proptest::collection::vec(0_u64..1_000_000_000, 1..200),
            percent in 1_u64..=100,
        ) {
            let mut histogram = Histogram::default();
            for value in &values {
                histogram.add(Duration::from_nanos(*value));
            }
            values.sort_unstable();
            let rank = usize::try_from((values.len() as u64 * percent).div_ceil(100)).unwrap();
            let exact = values[rank - 1];
            let found = u64::try_from(histogram.percentile(percent).as_nanos()).unwrap();
            prop_assert!(found >= exact && found - exact <= exact / PARTS, "{exact} {found}");
        }
    }

    #[test]
    fn nothing_has_no_percentile() {
        assert_eq!(Histogram::default().percentile(99), Duration::ZERO);
    }

    #[test]
    fn a_minute_needs_little_memory() {
        let minute = Duration::from_secs(60).as_nanos();
        assert!(bucket(u64::try_from(minute).unwrap()) < 2100);
    }
}
