//! Numbers that vary delays. Not for secrets.

use std::{
    hash::{BuildHasher, Hasher, RandomState},
    time::Duration,
};

use rubelet_base::SplitMix;

/// A sequence of numbers that looks random.
#[derive(Debug, Clone)]
pub(crate) struct Jitter(SplitMix);

impl Jitter {
    pub(crate) fn new(seed: u64) -> Self {
        Self(SplitMix::new(seed))
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0.next()
    }

    /// `base`, up to twice as long.
    pub(crate) fn up_to_double(&mut self, base: Duration) -> Duration {
        let thousandths = u32::try_from(self.next() % 1000).expect("less than a thousand");
        base + base / 1000 * thousandths
    }
}

/// Another number in each process.
pub(crate) fn random_seed() -> u64 {
    RandomState::new().build_hasher().finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_spread_over_the_whole_range() {
        let mut jitter = Jitter::new(1);
        let base = Duration::from_secs(1);
        let delays: Vec<Duration> = (0..100).map(|_| jitter.up_to_double(base)).collect();
        assert!(delays.iter().all(|delay| (base..2 * base).contains(delay)));
        assert!(delays.iter().any(|delay| *delay < base.mul_f32(1.2)));
        assert!(delays.iter().any(|delay| *delay > base.mul_f32(1.8)));
    }

    #[test]
    fn the_same_seed_gives_the_same_sequence() {
        let numbers = |seed| {
            let mut jitter = Jitter::new(seed);
            [jitter.next(), jitter.next()]
        };
        assert_eq!(numbers(7), numbers(7));
        assert_ne!(numbers(7), numbers(8));
    }
}
