//! Forgets what a map no longer needs, so that its size follows what happens and not what happened.

use std::{collections::HashMap, hash::Hash};

/// A smaller map is not worth going through.
const SMALL: usize = 128;

/// Says when a map is gone through: when it has doubled since the last time, so that each entry
/// costs the same however many there are.
#[derive(Debug)]
pub(super) struct Sweep {
    at: usize,
}

impl Default for Sweep {
    fn default() -> Self {
        Self { at: SMALL }
    }
}

impl Sweep {
    /// Removes what is due by `now`, if it is time to look. Of more than `most` entries the half
    /// that is due first goes, too.
    pub(super) fn run<K: Eq + Hash, V, T: Ord + Copy>(
        &mut self,
        map: &mut HashMap<K, V>,
        most: usize,
        due: impl Fn(&V) -> T,
        now: T,
    ) {
        if map.len() < self.at {
            return;
        }
        map.retain(|_, value| due(value) > now);
        if map.len() >= most {
            let mut times: Vec<T> = map.values().map(&due).collect();
            times.sort_unstable();
            let middle = times[times.len() / 2];
            map.retain(|_, value| due(value) > middle);
        }
        map.shrink_to(map.len() * 2);
        self.at = (map.len() * 2).clamp(SMALL, most);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_due_goes_and_what_is_not_stays_up_to_the_bound() {
        let mut sweep = Sweep::default();
        let mut map = HashMap::new();
        for time in 0..10_000_u32 {
            map.insert(time, time);
            // Each entry is due 100 after it came.
            sweep.run(&mut map, 4096, |time| time + 100, time);
            assert!(map.len() <= 256, "{} at {time}", map.len());
            assert!(map.contains_key(&time.saturating_sub(99)));
        }
        for time in 10_000..30_000_u32 {
            map.insert(time, time);
            sweep.run(&mut map, 4096, |time| time + 1_000_000, time);
            assert!(map.len() <= 4096);
            assert!(map.contains_key(&time));
        }
        assert!(map.contains_key(&28_500), "the newest stay");
    }
}
