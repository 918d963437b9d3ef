//! A pod that ran on this node before and whose record is lost or damaged.
//!
//! One list that omits a running pod would have it created a second time. So such a pod is left
//! alone until two lists agree. A pod without a directory never ran here and does not wait.

use std::time::Duration;

use rubelet_pleg::RuntimeIds;
use rubelet_pod_plan::ObservedPod;
use tokio::time::sleep;

use super::PodTask;

/// Time between the two lists: a wrong list is soon followed by a correct one.
const BETWEEN: Duration = Duration::from_millis(200);

/// The identifiers in the last observation; `None` before the first.
#[derive(Debug, Default)]
pub(super) struct AbsenceCheck(Option<RuntimeIds>);

impl AbsenceCheck {
    /// True if this observation has the same identifiers as the last one.
    fn agrees_with(&mut self, pod: &ObservedPod) -> bool {
        let seen = RuntimeIds::of(pod);
        let agrees = self.0.as_ref() == Some(&seen);
        self.0 = Some(seen);
        agrees
    }
}

impl PodTask {
    /// True if the observation must not be acted on yet; the next one is then based on a list that
    /// begins some time later.
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
