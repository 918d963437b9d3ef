//! Changes that a relist found although events should have reported them.

use std::time::Duration;

use rubelet_base::{PodUid, Seq};
use tokio::time::Instant;

use super::listing::Difference;

/// Longest delay of an event after a list has shown its change.
const GRACE: Duration = Duration::from_millis(500);

/// Differences that wait for their event.
#[derive(Debug, Default)]
pub(super) struct MissedChanges(Vec<UnreportedChange>);

#[derive(Debug)]
pub(super) struct UnreportedChange {
    until: Instant,
    pub(super) uid: PodUid,
    /// When the list began, in the order of this process.
    pub(super) began: Seq,
    pub(super) difference: Difference,
}

impl MissedChanges {
    /// A list showed a change that nothing had reported.
    pub(super) fn note(&mut self, uid: &PodUid, began: Seq, difference: Difference, now: Instant) {
        self.0.push(UnreportedChange {
            until: now + GRACE,
            uid: uid.clone(),
            began,
            difference,
        });
    }

    /// When the first of them will count as missed.
    pub(super) fn next(&self) -> Option<Instant> {
        self.0.first().map(|change| change.until)
    }

    /// Those whose event has not come in time.
    pub(super) fn take_due(&mut self, now: Instant) -> impl Iterator<Item = UnreportedChange> {
        let due = self.0.partition_point(|change| change.until <= now);
        self.0.drain(..due)
    }
}
