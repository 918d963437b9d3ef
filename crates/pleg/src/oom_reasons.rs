//! Exits that the runtime reports as OOM kills only later: containerd changes the reason of an
//! exited container when its out-of-memory event arrives after the exit.

use std::{collections::BTreeMap, time::Duration};

use rubelet_base::ContainerId;
use rubelet_pod_plan::{ObservedPod, observed::Exit};
use tokio::time::Instant;

/// Exit code after SIGKILL.
const KILLED: i32 = 137;
/// Times of the two further reads of such an exit, counted from the first one.
const LOOK_AGAIN: [Duration; 2] = [Duration::from_millis(300), Duration::from_secs(2)];

/// The exits of one pod whose reason may still become `OOMKilled`.
#[derive(Debug, Default)]
pub(super) struct PendingOomReasons {
    exits: BTreeMap<ContainerId, PendingOomReason>,
}

#[derive(Debug, Clone, Copy)]
struct PendingOomReason {
    since: Instant,
    settled: bool,
}

impl PendingOomReasons {
    /// Records the exits of an observation; returns the time of the next inspection, if one is
    /// needed.
    pub(super) fn note(&mut self, pod: &ObservedPod, now: Instant) -> Option<Instant> {
        let known = std::mem::take(&mut self.exits);
        let [first, last] = LOOK_AGAIN;
        for found in &pod.containers {
            if found.phase.exit().is_some_and(may_change) {
                let new = PendingOomReason {
                    since: now,
                    settled: false,
                };
                let mut late = known.get(&found.id).copied().unwrap_or(new);
                late.settled |= now >= late.since + last;
                self.exits.insert(found.id.clone(), late);
            }
        }
        let open = self.exits.values().filter(|late| !late.settled);
        open.map(|late| {
            late.since
                + if now < late.since + first {
                    first
                } else {
                    last
                }
        })
        .min()
    }

    /// True if the status of this container must be read again.
    pub(super) fn rereads(&self, id: &ContainerId) -> bool {
        self.exits.get(id).is_some_and(|late| !late.settled)
    }
}

/// True for an exit by SIGKILL with another reason.
pub(super) fn may_change(exit: &Exit) -> bool {
    exit.code == KILLED && &*exit.reason != Exit::OOM_KILLED
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use rubelet_pod_plan::ContainerPhase;

    use super::*;
    use crate::tests::seen_container;

    fn pod(code: i32, reason: &str) -> ObservedPod {
        let exit = Exit {
            code,
            reason: reason.into(),
            message: "".into(),
            started_at: None,
            finished_at: Timestamp::UNIX_EPOCH,
        };
        let found = seen_container("c", ContainerPhase::Exited(exit));
        ObservedPod {
            containers: vec![found],
            ..ObservedPod::default()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_killed_container_is_read_twice_more() {
        let (mut late, start) = (PendingOomReasons::default(), Instant::now());
        let id = ContainerId::from("c");
        let at = |millis| start + Duration::from_millis(millis);
        for (now, next) in [
            (0, Some(300)),
            (100, Some(300)),
            (300, Some(2000)),
            (2000, None),
        ] {
            assert_eq!(
                late.note(&pod(137, "Error"), at(now)),
                next.map(at),
                "at {now} ms"
            );
            assert_eq!(late.rereads(&id), next.is_some(), "at {now} ms");
        }
        assert_eq!(
            late.note(&pod(137, "Error"), at(60_000)),
            None,
            "once and for all"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn other_exits_are_final() {
        for (code, reason) in [(137, "OOMKilled"), (0, "Completed"), (143, "Error")] {
            let mut late = PendingOomReasons::default();
            assert_eq!(
                late.note(&pod(code, reason), Instant::now()),
                None,
                "{code} {reason}"
            );
            assert!(!late.rereads(&ContainerId::from("c")), "{code} {reason}");
        }
    }
}
