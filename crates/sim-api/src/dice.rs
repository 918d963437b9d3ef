//! Reproducible random numbers.

use std::time::Duration;

use rubelet_base::SplitMix;

/// Random numbers with a seed.
#[derive(Debug, Clone)]
pub(crate) struct Dice(SplitMix);

impl Dice {
    /// The same seed gives the same numbers.
    pub(crate) fn new(seed: u64) -> Self {
        Self(SplitMix::new(seed))
    }

    /// The next number.
    pub(crate) fn next(&mut self) -> u64 {
        self.0.next()
    }

    /// True with this probability, from 0 to 1.
    pub(crate) fn hits(&mut self, share: f64) -> bool {
        if share >= 1.0 {
            return true;
        }
        // A double holds 53 bits.
        #[expect(clippy::cast_precision_loss, reason = "53 bits fit a double")]
        let drawn = (self.next() >> 11) as f64 / (1_u64 << 53) as f64;
        drawn < share
    }

    /// A duration between two.
    pub(crate) fn between(&mut self, from: Duration, to: Duration) -> Duration {
        let width = to.saturating_sub(from).as_micros();
        let width = u64::try_from(width).unwrap_or(u64::MAX);
        if width == 0 {
            return from;
        }
        from + Duration::from_micros(self.next() % width.saturating_add(1).max(1))
    }

    /// A UID in the form of a random UUID.
    pub(crate) fn uid(&mut self) -> String {
        let (high, low) = (self.next(), self.next());
        format!(
            "{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}",
            high >> 32,
            (high >> 16) & 0xffff,
            high & 0xfff,
            0x8000 | ((low >> 48) & 0x3fff),
            low & 0xffff_ffff_ffff
        )
    }

    /// Five characters, as `generateName` appends: without vowels, so that they are no words.
    pub(crate) fn suffix(&mut self) -> String {
        const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
        let mut drawn = self.next();
        (0..5)
            .map(|_| {
                let count = LETTERS.len() as u64;
                let letter = LETTERS[usize::try_from(drawn % count).unwrap_or(0)];
                drawn /= count;
                char::from(letter)
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_seeds_give_equal_numbers_with_their_shares() {
        let (mut one, mut two) = (Dice::new(7), Dice::new(7));
        assert_eq!(one.uid(), two.uid());
        assert_ne!(one.uid(), one.uid());
        let hits = (0..10_000).filter(|_| two.hits(0.25)).count();
        assert!((2_300..2_700).contains(&hits), "{hits}");
        assert!(one.hits(1.0) && !one.hits(0.0));
    }

    #[test]
    fn uids_and_suffixes_have_the_api_servers_form() {
        let mut dice = Dice::new(1);
        let uid = dice.uid();
        assert_eq!(uid.len(), 36);
        assert_eq!(&uid[14..15], "4");
        assert!("89ab".contains(&uid[19..20]), "{uid}");
        assert_eq!(dice.suffix().len(), 5);
    }

    #[test]
    fn times_are_drawn_within_their_bounds() {
        let mut dice = Dice::new(3);
        let (from, to) = (Duration::from_millis(5), Duration::from_millis(9));
        for _ in 0..1000 {
            assert!((from..=to).contains(&dice.between(from, to)));
        }
        assert_eq!(dice.between(to, from), to);
    }
}
