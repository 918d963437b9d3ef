//! When a status that did not change is sent all the same, spread over the nodes of a cluster.

use std::time::Duration;

use rubelet_base::SplitMix;

/// When the last report was sent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReportSchedule {
    due: Option<Duration>,
}

impl ReportSchedule {
    /// Whether a report is due at `at`, a time that only goes forward. The first one always is.
    #[must_use]
    pub fn is_due(&self, at: Duration) -> bool {
        self.due.is_none_or(|due| at >= due)
    }

    /// A report was sent at `at`. After one that reported a change, and after the first one, the
    /// next comes after half to one and a half of the frequency, as `chance`, from 0 to 1, decides;
    /// otherwise after the frequency itself.
    pub fn sent(&mut self, at: Duration, frequency: Duration, changed: bool, chance: f64) {
        let wait = match changed || self.due.is_none() {
            true => frequency.mul_f64(0.5 + chance.clamp(0.0, 1.0)),
            false => frequency,
        };
        self.due = Some(at.saturating_add(wait));
    }
}

/// Numbers that look random and differ between nodes, for delays that must not fall together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeRandom(SplitMix);

impl NodeRandom {
    /// The numbers of a node. `salt` separates its tasks.
    #[must_use]
    pub fn new(node: &str, salt: u64) -> Self {
        // FNV-1a over the name.
        let seed = node.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
        });
        let salted = seed ^ salt.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Self(SplitMix::new(salted))
    }

    /// The next number, from 0 to less than 1.
    pub fn next_unit(&mut self) -> f64 {
        let top = u32::try_from(self.0.next() >> 32).unwrap_or(u32::MAX);
        f64::from(top) / (f64::from(u32::MAX) + 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FREQUENCY: Duration = Duration::from_secs(300);

    fn seconds(count: u64) -> Duration {
        Duration::from_secs(count)
    }

    #[test]
    fn reports_come_at_the_frequency_and_at_another_offset_after_each_change() {
        let mut schedule = ReportSchedule::default();
        assert!(schedule.is_due(seconds(0)));
        schedule.sent(seconds(0), FREQUENCY, false, 0.0);
        assert!(!schedule.is_due(seconds(149)) && schedule.is_due(seconds(150)));
        schedule.sent(seconds(150), FREQUENCY, false, 0.9);
        assert!(!schedule.is_due(seconds(449)) && schedule.is_due(seconds(450)));
        schedule.sent(seconds(460), FREQUENCY, true, 1.0);
        assert!(!schedule.is_due(seconds(909)) && schedule.is_due(seconds(910)));
    }

    #[test]
    fn chances_are_spread_and_differ_between_nodes() {
        let draw = |name, salt| {
            let mut chance = NodeRandom::new(name, salt);
            let numbers: Vec<f64> = (0..1000).map(|_| chance.next_unit()).collect();
            assert!(numbers.iter().all(|number| (0.0..1.0).contains(number)));
            let low = numbers.iter().filter(|number| **number < 0.5).count();
            assert!(
                (400..600).contains(&low),
                "{low} of 1000 are below the middle"
            );
            numbers
        };
        assert_ne!(draw("a", 0), draw("b", 0));
        assert_ne!(draw("a", 0), draw("a", 1));
    }
}
