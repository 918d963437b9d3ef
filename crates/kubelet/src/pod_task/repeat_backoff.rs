//! Backoff for steps without effect: a runtime that reports success and changes nothing must not be
//! called again without a pause.

use std::{sync::Arc, time::Duration};

use rubelet_pod_plan::{ObservedPod, Step};
use tokio::time::Instant;

/// First pause before steps without effect are repeated; doubles up to [`MAX`].
const INITIAL: Duration = Duration::from_secs(1);
/// Longest pause.
const MAX: Duration = Duration::from_secs(10);

/// The steps applied last, and the observation that they were planned from.
#[derive(Debug, Default)]
pub(super) struct RepeatBackoff {
    last: Option<AppliedSteps>,
}

#[derive(Debug)]
struct AppliedSteps {
    steps: Vec<Step>,
    seen: Arc<ObservedPod>,
    pause: Duration,
    again_at: Instant,
}

impl RepeatBackoff {
    /// The wait before these steps; `None` if they are to be applied now, and then they count as
    /// applied. Failed steps have back-offs of their own, which are not shorter.
    pub(super) fn wait(
        &mut self,
        steps: &[Step],
        seen: &Arc<ObservedPod>,
        now: Instant,
    ) -> Option<Duration> {
        let mut pause = INITIAL;
        if let Some(last) = &self.last
            && last.steps == steps
            && last.seen == *seen
        {
            if now < last.again_at {
                return Some(last.again_at - now);
            }
            pause = last.pause.saturating_mul(2).min(MAX);
        }
        self.last = Some(AppliedSteps {
            steps: steps.to_vec(),
            seen: Arc::clone(seen),
            pause,
            again_at: now + pause,
        });
        None
    }
}
