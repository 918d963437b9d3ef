//! Detects a slow runtime: an event reports it, and the node stays ready.

use std::{sync::Arc, time::Duration};

use tokio::time::Instant;

use super::queue::HUNG_SLOTS;

/// A list that takes longer than this is slow.
const SLOW_LIST: Duration = Duration::from_secs(10);

/// Time without a slow call after which an episode is over, so that a problem that comes and goes
/// is reported once.
const REST: Duration = Duration::from_secs(60);

/// An episode of slowness, from the first sign until nothing was slow for [`REST`].
#[derive(Debug, Default)]
pub(super) struct Slowness {
    /// The last list that ended was slow.
    list: bool,
    reported: bool,
    /// Time since which no call has been slow; only while the runtime counts as slow.
    fast_since: Option<Instant>,
}

impl Slowness {
    /// Records the duration of a list. A failed one does not count, unless it was slow.
    pub(super) fn listed(&mut self, took: Duration, succeeded: bool) {
        if succeeded || took >= SLOW_LIST {
            self.list = took >= SLOW_LIST;
        }
    }

    /// Checks the list in progress, and whether `crowded`: pods whose inspections hang wait for a
    /// slot. Returns a value when the report changes: the reason of a new episode, or `Some(None)`
    /// at its end.
    pub(super) fn check(
        &mut self,
        now: Instant,
        relisting: Option<Instant>,
        crowded: bool,
    ) -> Option<Option<Arc<str>>> {
        let list = self.list || relisting.is_some_and(|at| now >= at + SLOW_LIST);
        if !list && !crowded {
            if !self.reported {
                return None;
            }
            let since = *self.fast_since.get_or_insert(now);
            if now < since + REST {
                return None;
            }
            *self = Self::default();
            return Some(None);
        }
        self.fast_since = None;
        if std::mem::replace(&mut self.reported, true) {
            return None;
        }
        let what = if list {
            format!("a list of all containers takes longer than {SLOW_LIST:?}")
        } else {
            format!("status calls for more than {HUNG_SLOTS} pods time out")
        };
        Some(Some(what.into()))
    }

    /// Time of the next check.
    pub(super) fn next(&self, relisting: Option<Instant>) -> Option<Instant> {
        let list = relisting
            .filter(|_| !self.reported)
            .map(|at| at + SLOW_LIST);
        let fast = self.fast_since.map(|at| at + REST);
        [list, fast].into_iter().flatten().min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_episode_is_reported_once_and_ends_after_a_minute_without() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut slow = Slowness::default();
        assert_eq!(slow.check(at(9), Some(at(0)), false), None);
        assert_eq!(slow.next(Some(at(0))), Some(at(10)));
        let reported = slow.check(at(10), Some(at(0)), false);
        assert!(matches!(reported, Some(Some(_))), "{reported:?}");
        // The next list is slow, too, and lists are far from each other.
        slow.listed(Duration::from_secs(20), true);
        for now in [20, 80, 300] {
            assert_eq!(slow.check(at(now), None, false), None);
        }
        // A list that fails quickly does not end the episode.
        slow.listed(Duration::from_secs(1), false);
        assert_eq!(slow.check(at(400), None, false), None);
        slow.listed(Duration::from_secs(1), true);
        assert_eq!(slow.check(at(500), None, false), None);
        assert_eq!(slow.next(None), Some(at(560)));
        // Something else is slow in between.
        assert_eq!(slow.check(at(530), None, true), None);
        assert_eq!(slow.check(at(540), None, false), None);
        assert_eq!(slow.check(at(599), None, false), None);
        assert_eq!(slow.check(at(600), None, false), Some(None));
        assert_eq!(slow.check(at(601), None, false), None);
        let again = slow.check(at(602), None, true);
        assert!(matches!(again, Some(Some(_))), "{again:?}");
    }
}
