//! A pod that was on this node before, and of which nothing is recorded: its record was lost or
//! damaged.
//!
//! One list that leaves out what runs would have such a pod made a second time. So nothing is done to
//! it before two looks agree. A pod that was never here, without a folder, does not wait.

use std::time::Duration;

use rubelet_pod_plan::ObservedPod;
use tokio::time::sleep;

use super::PodTask;
use crate::pleg::RuntimeIds;

/// Time between two looks: lists that are wrong are so for a moment.
const BETWEEN: Duration = Duration::from_millis(200);

/// What the last look showed; empty before the first.
#[derive(Debug, Default)]
pub(super) struct Doubt(Option<RuntimeIds>);

impl Doubt {
    /// Whether this look shows what the last one did.
    fn ends_with(&mut self, pod: &ObservedPod) -> bool {
        let seen = RuntimeIds::of(pod);
        let agrees = self.0.as_ref() == Some(&seen);
        self.0 = Some(seen);
        agrees
    }
}

impl PodTask {
    /// Whether what was observed is not to be acted on; the next observation is then of a list that
    /// began some time later.
    pub(super) async fn doubts(&mut self, observed: &ObservedPod) -> bool {
        let Some(doubt) = &mut self.doubt else {
            return false;
        };
        if doubt.ends_with(observed) {
            self.doubt = None;
            return false;
        }
        sleep(BETWEEN).await;
        self.last_step = self.context.pleg.list_again(&self.pod.uid);
        true
    }
}
