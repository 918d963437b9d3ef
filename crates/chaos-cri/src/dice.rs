//! Reproducible random numbers: the same seed gives the same numbers.

use std::ops::Range;

use rubelet_base::SplitMix;

/// A sequence of random numbers, determined by a seed.
#[derive(Debug, Clone)]
pub struct Dice(SplitMix);

impl Dice {
    /// The numbers of `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(SplitMix::new(seed))
    }

    /// The numbers of one decision: the `count`th of rule `rule`. They don't depend on other rules
    /// and calls.
    pub(crate) fn for_decision(seed: u64, rule: usize, count: u64) -> Self {
        let mut by_rule = Self::new(seed ^ (rule as u64).wrapping_mul(0xa076_1d64_78bd_642f));
        let mixed = by_rule.next();
        Self::new(mixed ^ count.wrapping_mul(0xe703_7ed1_a0b4_28db))
    }

    /// The next number.
    #[expect(
        clippy::should_implement_trait,
        reason = "an iterator would have an end to check for"
    )]
    pub fn next(&mut self) -> u64 {
        self.0.next()
    }

    /// A number from 0 to `limit` - 1; 0 if `limit` is 0.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit.max(1)
    }

    /// A number of the range; its start if it is empty.
    pub fn within(&mut self, range: &Range<u64>) -> u64 {
        range.start + self.below(range.end.saturating_sub(range.start))
    }

    /// True with a probability of `millionths` of a million.
    pub fn happens(&mut self, millionths: u32) -> bool {
        self.below(1_000_000) < u64::from(millionths)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_numbers_and_another_differs() {
        let numbers = |seed| {
            let mut dice = Dice::new(seed);
            [(); 8].map(|()| dice.below(1000))
        };
        assert_eq!(numbers(7), numbers(7));
        assert_ne!(numbers(7), numbers(8));
    }

    #[test]
    fn never_and_always_are_exact() {
        let mut dice = Dice::new(1);
        assert!((0..1000).all(|_| !dice.happens(0) && dice.happens(1_000_000)));
        assert_eq!(dice.within(&(5..5)), 5);
    }
}
