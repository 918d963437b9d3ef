//! Kills of the OOM killer in the containers of a pod.

/// The kills that are not in a container which may still run.
///
/// systemd removes a scope as soon as its last process has exited, and with it the container's count, maybe before that
/// was read. In version 2 the pod's cgroup counts the kills in all cgroups below it, also in those that were removed. So
/// what is in no other container was in that one.
#[derive(Debug, Default)]
pub(super) struct OomKillLedger {
    /// Kills before the pod's first container, and in its ended ones; `None` if the pod's cgroup doesn't count them.
    settled: Option<u64>,
}

impl OomKillLedger {
    /// Whether the count of the pod was taken.
    pub(super) fn has_begun(&self) -> bool {
        self.settled.is_some()
    }

    /// Takes the count of the pod before its first container.
    pub(super) fn begin(&mut self, pod: Option<u64>) {
        self.settled = pod;
    }

    /// A container ended with a count of its own.
    pub(super) fn settle(&mut self, kills: u64) {
        if let Some(settled) = &mut self.settled {
            *settled += kills;
        }
    }

    /// A container ended, and its count is gone: its kills, from the pod's count, and from those of the other containers
    /// that may still run; `None` for one whose count is gone as well.
    pub(super) fn settle_lost(&mut self, pod: u64, others: &[Option<u64>]) -> u64 {
        let Some(settled) = &mut self.settled else {
            return 0;
        };
        let known = *settled + others.iter().flatten().sum::<u64>();
        let rest = pod.saturating_sub(known);
        // The others with a lost count may have been killed too.
        let own = if others.contains(&None) {
            rest.min(1)
        } else {
            rest
        };
        *settled += own;
        own
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ledger() -> OomKillLedger {
        OomKillLedger { settled: Some(2) }
    }

    #[test]
    fn a_lost_count_is_what_no_other_container_has() {
        // The first two kills are older than the pod's first container.
        assert_eq!(ledger().settle_lost(2, &[]), 0);
        assert_eq!(ledger().settle_lost(3, &[]), 1);
        assert_eq!(ledger().settle_lost(5, &[Some(3)]), 0);
        assert_eq!(ledger().settle_lost(6, &[Some(1), Some(2)]), 1);
    }

    #[test]
    fn kills_of_ended_containers_are_not_told_of_others() {
        let mut kills = ledger();
        kills.settle(3);
        assert_eq!(kills.settle_lost(6, &[]), 1);
        assert_eq!(kills.settle_lost(6, &[]), 0);
        assert_eq!(kills.settle_lost(8, &[]), 2);
    }

    #[test]
    fn two_that_are_lost_together_share_the_kills() {
        let mut kills = ledger();
        assert_eq!(kills.settle_lost(5, &[None, Some(0)]), 1);
        assert_eq!(kills.settle_lost(5, &[Some(0)]), 2);
        assert_eq!(ledger().settle_lost(2, &[None]), 0);
    }

    #[test]
    fn without_a_count_of_the_pod_nothing_is_told() {
        let mut kills = OomKillLedger::default();
        kills.settle(1);
        assert_eq!(kills.settle_lost(7, &[]), 0);
    }
}
