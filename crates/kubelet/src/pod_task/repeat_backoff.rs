//! Backoff for steps that change nothing: a runtime that claims to have done what it did not do
//! must not be called again without a pause.

use std::{sync::Arc, time::Duration};

use rubelet_pod_plan::{ObservedPod, Step};
use tokio::time::Instant;

/// First pause before steps are repeated that had no effect; doubles up to [`MAX`].
const INITIAL: Duration = Duration::from_secs(1);
/// Longest pause.
const MAX: Duration = Duration::from_secs(10);

/// The steps applied last, and what they were decided from.
#[derive(Debug, Default)]
pub(super) struct RepeatBackoff {
    last: Option<Try>,
}

#[derive(Debug)]
struct Try {
    steps: Vec<Step>,
    seen: Arc<ObservedPod>,
    pause: Duration,
    again_at: Instant,
}

impl RepeatBackoff {
    /// How long to wait before these steps; `None`: they must be applied now, and count as
    /// applied. Steps that failed have waits of their own, which are not shorter.
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
        self.last = Some(Try {
            steps: steps.to_vec(),
            seen: Arc::clone(seen),
            pause,
            again_at: now + pause,
        });
        None
    }
}
