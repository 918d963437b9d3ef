//! The second source of exits: the kernel. Some runtimes report the exit of a container long after
//! its process has exited; containerd first lets `runc` clean up. The kernel reports it at once,
//! without a call in between. That is a fact beside the runtime's report: the pod is inspected
//! then, and its record says that the process is gone and, since Linux 6.15, with which exit code;
//! but not that the container has exited. It also finds what no query of the runtime can: an exit
//! that the runtime has lost.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use futures_util::{FutureExt as _, StreamExt as _, future::BoxFuture, stream::FuturesUnordered};
use prometheus::IntGauge;
use rubelet_base::{ContainerId, PodUid};
use rubelet_pod_plan::{ObservedContainer, ObservedPod, ProcessState};
use tokio::time::Instant;
use tracing::warn;

use super::{
    cause::Cause,
    handle::PlegHandle,
    kernel_marks::{KernelExit, LostProcess, runs},
    tracked_pod::{Marks, TrackedPod},
};
use crate::processes::Processes;

/// [`PlegSettings::rest`](super::PlegSettings) of a node at work.
pub const PID_QUERY_IDLE: Duration = Duration::from_secs(2);
/// But they don't wait longer than this for that.
const ASK_BY: Duration = Duration::from_secs(30);
/// The pause between two pods.
const PAUSE: Duration = Duration::from_millis(20);

/// The process of a container has ended; with its exit code, where that is known.
pub(super) type ProcessEnd = (PodUid, ContainerId, Option<i32>);

/// Watches processes.
pub(super) struct Kernel {
    processes: Option<Arc<dyn Processes>>,
    pid_query_idle: Duration,
    ends: FuturesUnordered<BoxFuture<'static, ProcessEnd>>,
    /// Pods with containers whose processes are not known.
    unasked: BTreeSet<PodUid>,
    /// Since when there are some.
    unasked_since: Option<Instant>,
    /// When the next one is queried for its processes.
    ask_at: Option<Instant>,
    watched: IntGauge,
}

impl Kernel {
    pub(super) fn new(
        processes: Option<Arc<dyn Processes>>,
        pid_query_idle: Duration,
        watched: IntGauge,
    ) -> Self {
        Self {
            processes,
            pid_query_idle,
            ends: FuturesUnordered::new(),
            unasked: BTreeSet::new(),
            unasked_since: None,
            ask_at: None,
            watched,
        }
    }

    /// The next process that ends; `None` at once if none is watched.
    pub(super) async fn ended(&mut self) -> Option<ProcessEnd> {
        let ended = self.ends.next().await;
        self.watched
            .set(self.ends.len().try_into().unwrap_or(i64::MAX));
        ended
    }

    /// When to query processes.
    pub(super) fn next(&self) -> Option<Instant> {
        self.ask_at
    }

    /// Takes note of what an inspection saw, and watches the processes that it names.
    pub(super) fn note(
        &mut self,
        tracked: &TrackedPod,
        marks: &mut Marks,
        pod: &ObservedPod,
        told: Vec<(ContainerId, Option<u32>)>,
        now: Instant,
    ) {
        let Some(processes) = &self.processes else {
            return;
        };
        let marks = &mut marks.kernel;
        let running = || pod.containers.iter().filter(|found| runs(found));
        for (id, pid) in told {
            let end = pid
                .filter(|_| running().any(|found| found.id == id))
                .and_then(|pid| processes.end(pid, &id));
            // Also without a process: a runtime that names none would be queried again and again.
            marks.asked.insert(id.clone());
            let uid = tracked.uid.clone();
            self.ends
                .extend(end.map(|end| end.map(|code| (uid, id, code)).boxed()));
        }
        self.watched
            .set(self.ends.len().try_into().unwrap_or(i64::MAX));
        marks.ask = false;
        marks
            .asked
            .retain(|id| running().any(|found| found.id == *id));
        let unasked = running().any(|found| !marks.asked.contains(&found.id));
        if unasked && self.unasked.insert(tracked.uid.clone()) {
            let since = *self.unasked_since.get_or_insert(now);
            // Each newcomer postpones the queries, so that a burst of starts is over before them;
            // `ASK_BY` bounds that.
            self.ask_at = Some((now + self.pid_query_idle).min(since + ASK_BY).max(now));
        }
    }

    /// Has the next pod inspected for its processes, if it is time.
    pub(super) fn ask(&mut self, handle: &PlegHandle, now: Instant) {
        if self.ask_at.is_none_or(|at| at > now) {
            return;
        }
        let uid = self.unasked.pop_first();
        if let Some(tracked) = uid.and_then(|uid| handle.shared.known(&uid)) {
            handle.mark_pod(&tracked, Cause::Recheck, |marks| marks.kernel.ask = true);
        }
        self.ask_at = (!self.unasked.is_empty()).then(|| now + PAUSE);
        self.unasked_since = self.unasked_since.filter(|_| self.ask_at.is_some());
    }
}

impl PlegHandle {
    /// The kernel reports that this container's process is gone. Ignored where the runtime has
    /// reported the exit already.
    pub(super) fn process_ended(&self, (uid, id, code): &ProcessEnd) {
        let Some(tracked) = self.shared.known(uid) else {
            return;
        };
        let seen = Arc::clone(&tracked.observation.borrow().pod);
        let runs = |found: &ObservedContainer| found.id == *id && runs(found);
        if seen.containers.iter().any(runs) {
            self.shared.metrics.pleg.process_ends.inc();
            self.mark_pod(&tracked, Cause::Kernel, |marks| {
                let at = self.shared.clock.now();
                let gone = LostProcess {
                    since: Instant::now(),
                    end: code.map(|code| KernelExit { code, at }),
                };
                marks.kernel.gone.insert(id.clone(), gone);
            });
        }
    }

    /// Counts the ends that the runtime has lost since the observation before.
    pub(super) fn count_lost(&self, tracked: &TrackedPod, old: &ObservedPod, new: &ObservedPod) {
        let is_lost = |found: &&ObservedContainer| found.process == ProcessState::Lost;
        for found in new.containers.iter().filter(is_lost) {
            let mut known = old.containers.iter().filter(is_lost);
            if !known.any(|before| before.id == found.id) {
                self.shared.metrics.pleg.lost_ends.inc();
                warn!(
                    pod = %tracked.uid, container = %found.name, id = %found.id,
                    "The runtime says that a container runs, but its process is gone"
                );
            }
        }
    }
}
