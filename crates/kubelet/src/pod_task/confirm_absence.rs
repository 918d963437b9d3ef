//! A pod that was on this node before, and of which nothing is recorded: its record was lost or
//! damaged.
//!
//! One list that omits a running pod would have it created a second time. So nothing is done to
//! such a pod before two lists agree. A pod that was never here, without a directory, does not
//! wait.

use std::time::Duration;

use rubelet_pleg::RuntimeIds;
use rubelet_pod_plan::ObservedPod;
use tokio::time::sleep;

use super::PodTask;

/// Time between two looks: lists that are wrong are so for a moment.
const BETWEEN: Duration = Duration::from_millis(200);

/// What the last look showed; empty before the first.
#[derive(Debug, Default)]
pub(super) struct AbsenceCheck(Option<RuntimeIds>);

impl AbsenceCheck {
    /// Whether this look shows what the last one did.
    fn agrees_with(&mut self, pod: &ObservedPod) -> bool {
        let seen = RuntimeIds::of(pod);
        let agrees = self.0.as_ref() == Some(&seen);
        self.0 = Some(seen);
        agrees
    }
}

impl PodTask {
    /// Whether what was observed is not to be acted on; the next observation is then of a list that
    /// began some time later.
    pub(super) async fn awaits_confirmation(&mut self, observed: &ObservedPod) -> bool {
        let Some(absence_check) = &mut self.absence_check else {
            return false;
        };
        if absence_check.agrees_with(observed) {
            self.absence_check = None;
            return false;
        }
        sleep(BETWEEN).await;
        self.last_step = self.context.pleg.relist_pod(&self.pod.uid);
        true
    }
}
