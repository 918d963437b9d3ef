//! Changes that a relist found although events should have told them.

use std::time::Duration;

use rubelet_base::{PodUid, Seq};
use tokio::time::Instant;

use super::{echo::Verdict, relist::Difference, task::PlegTask};

/// So long an event may still come after a list has shown its change.
const GRACE: Duration = Duration::from_millis(500);

/// Differences that wait for their event.
#[derive(Debug, Default)]
pub(super) struct Missed(Vec<Suspicion>);

#[derive(Debug)]
struct Suspicion {
    until: Instant,
    uid: PodUid,
    /// When the list began, in the order of this process.
    began: Seq,
    difference: Difference,
}

impl Missed {
    /// A list showed a change that nothing had told.
    pub(super) fn note(&mut self, uid: &PodUid, began: Seq, difference: Difference, now: Instant) {
        self.0.push(Suspicion {
            until: now + GRACE,
            uid: uid.clone(),
            began,
            difference,
        });
    }

    /// When the first of them will count as missed.
    pub(super) fn next(&self) -> Option<Instant> {
        self.0.first().map(|suspicion| suspicion.until)
    }
}

impl PlegTask {
    /// Counts the changes of which no event has come in time.
    pub(super) fn look_for_missed(&mut self, now: Instant) {
        let due = self
            .missed
            .0
            .partition_point(|suspicion| suspicion.until <= now);
        let mut missed = false;
        for suspicion in self.missed.0.drain(..due) {
            let Some(cell) = self.handle.shared.known(&suspicion.uid) else {
                continue;
            };
            // An event or a step of this agent explains it.
            if cell.marks().last_event > suspicion.began {
                continue;
            }
            missed = true;
            let kind = suspicion.difference.as_str();
            self.handle.shared.metrics.pleg.missed_change(kind);
            tracing::warn!(pod = %suspicion.uid, kind, "A relist found what no event had told");
        }
        if missed {
            self.suspect(Verdict::Renew);
        }
    }
}
