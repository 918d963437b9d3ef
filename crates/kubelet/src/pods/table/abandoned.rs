//! Sandboxes whose creation was abandoned because their pod was removed.
//!
//! A runtime may complete such a call long after the pod is gone. If the same manifest is written
//! again meanwhile, its pod has the same UID: a request with the same attempt then has the same name
//! in the runtime, which reserves it, and no second sandbox comes into being. With another attempt
//! there would be two.

use std::{collections::BTreeMap, time::Duration};

use rubelet_base::PodUid;
use tokio::time::Instant;

/// How long an abandoned call is reckoned with: more than twice the longest time that is given to
/// one that is not abandoned.
const KEPT: Duration = Duration::from_secs(600);

/// The attempts of abandoned requests, by pod.
#[derive(Debug, Default)]
pub(super) struct AbandonedSandboxes(BTreeMap<PodUid, (u32, Instant)>);

impl AbandonedSandboxes {
    /// Notes the attempt that a removed pod has abandoned, and drops old ones.
    pub(super) fn note(&mut self, uid: &PodUid, attempt: Option<u32>, now: Instant) {
        self.0.retain(|_, (_, at)| now < *at + KEPT);
        if let Some(attempt) = attempt {
            self.0.insert(uid.clone(), (attempt, now));
        }
    }

    /// The attempt from which a pod with this UID continues.
    pub(super) fn take(&mut self, uid: &PodUid, now: Instant) -> Option<u32> {
        let (attempt, at) = self.0.remove(uid)?;
        (now < at + KEPT).then_some(attempt)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attempt_is_kept_for_ten_minutes_and_taken_once() {
        let (a, b) = (PodUid::from("a"), PodUid::from("b"));
        let start = Instant::now();
        let mut abandoned = AbandonedSandboxes::default();
        abandoned.note(&a, Some(3), start);
        abandoned.note(&b, None, start + KEPT / 2);
        assert_eq!(abandoned.take(&b, start), None);
        assert_eq!(abandoned.take(&a, start + KEPT / 2), Some(3));
        assert_eq!(abandoned.take(&a, start), None);
        abandoned.note(&a, Some(4), start);
        abandoned.note(&b, Some(1), start + KEPT);
        assert_eq!(abandoned.0.len(), 1);
    }
}
