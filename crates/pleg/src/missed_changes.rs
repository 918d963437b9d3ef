//! Changes that a relist found and no event reported.

use std::time::Duration;

use rubelet_base::{PodUid, Seq};
use tokio::time::Instant;

use super::listing::Difference;

/// Longest delay of an event after a relist has shown its change.
const GRACE: Duration = Duration::from_millis(500);

/// Changes that a relist found and whose event may still arrive.
#[derive(Debug, Default)]
pub(super) struct MissedChanges(Vec<UnreportedChange>);

#[derive(Debug)]
pub(super) struct UnreportedChange {
    until: Instant,
    pub(super) uid: PodUid,
    /// Sequence number of the list.
    pub(super) began: Seq,
    pub(super) difference: Difference,
}

impl MissedChanges {
    /// Adds a change that a list showed and no event had reported.
    pub(super) fn note(&mut self, uid: &PodUid, began: Seq, difference: Difference, now: Instant) {
        self.0.push(UnreportedChange {
            until: now + GRACE,
            uid: uid.clone(),
            began,
            difference,
        });
    }

    /// Time at which the first of them counts as missed.
    pub(super) fn next(&self) -> Option<Instant> {
        self.0.first().map(|change| change.until)
    }

    /// Removes and returns the changes whose event has not arrived in time.
    pub(super) fn take_due(&mut self, now: Instant) -> impl Iterator<Item = UnreportedChange> {
        let due = self.0.partition_point(|change| change.until <= now);
        self.0.drain(..due)
    }
}
