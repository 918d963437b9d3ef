//! The second source of exits: the kernel. Some runtimes report the exit of a container long after
//! its process has exited; containerd first lets `runc` clean up. The kernel reports it at once,
//! through a pidfd. The pod is then inspected, and its observation contains, beside the runtime's
//! status, that the process is gone and, since Linux 6.15, its exit code. The container itself has
//! not exited before the runtime reports it. The kernel also reveals what no query of the runtime
//! can: an exit that the runtime has lost.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use futures_util::{FutureExt as _, StreamExt as _, future::BoxFuture, stream::FuturesUnordered};
use prometheus::IntGauge;
use rubelet_base::{ContainerId, PodUid};
use rubelet_pod_plan::{ObservedContainer, ObservedPod, ProcessState};
use tokio::time::Instant;
use tracing::warn;

use super::{
    cause::InspectionCause,
    handle::PlegHandle,
    kernel_exits::{KernelExit, LostProcess, runs},
    tracked_pod::{PendingChanges, TrackedPod},
};
use crate::processes::Processes;

/// Default of [`PlegSettings::pid_query_idle`](super::PlegSettings::pid_query_idle).
pub const PID_QUERY_IDLE: Duration = Duration::from_secs(2);
/// Longest wait for such an idle time.
const QUERY_BY: Duration = Duration::from_secs(30);
/// Pause between the queries of two pods.
const PAUSE: Duration = Duration::from_millis(20);

/// An exited container process: pod, container, and exit code where it is known.
pub(super) type ProcessEnd = (PodUid, ContainerId, Option<i32>);

/// Watches the init processes of containers by pidfd.
pub(super) struct ProcessWatcher {
    processes: Option<Arc<dyn Processes>>,
    pid_query_idle: Duration,
    ends: FuturesUnordered<BoxFuture<'static, ProcessEnd>>,
    /// Pods with containers whose PIDs have not been queried.
    unqueried: BTreeSet<PodUid>,
    /// Time since which there are such pods.
    unqueried_since: Option<Instant>,
    /// Time at which the next of them is queried.
    query_at: Option<Instant>,
    watched: IntGauge,
}

impl ProcessWatcher {
    pub(super) fn new(
        processes: Option<Arc<dyn Processes>>,
        pid_query_idle: Duration,
        watched: IntGauge,
    ) -> Self {
        Self {
            processes,
            pid_query_idle,
            ends: FuturesUnordered::new(),
            unqueried: BTreeSet::new(),
            unqueried_since: None,
            query_at: None,
            watched,
        }
    }

    /// Resolves with the next process that exits; at once with `None` if none is watched.
    pub(super) async fn ended(&mut self) -> Option<ProcessEnd> {
        let ended = self.ends.next().await;
        self.watched
            .set(self.ends.len().try_into().unwrap_or(i64::MAX));
        ended
    }

    /// Time of the next query for PIDs.
    pub(super) fn next(&self) -> Option<Instant> {
        self.query_at
    }

    /// Watches the processes whose PIDs an inspection read, and schedules queries for the others.
    pub(super) fn note(
        &mut self,
        tracked: &TrackedPod,
        pending: &mut PendingChanges,
        pod: &ObservedPod,
        pids: Vec<(ContainerId, Option<u32>)>,
        now: Instant,
    ) {
        let Some(processes) = &self.processes else {
            return;
        };
        let exits = &mut pending.unsettled.kernel_exits;
        let running = || pod.containers.iter().filter(|found| runs(found));
        for (id, pid) in pids {
            let end = pid
                .filter(|_| running().any(|found| found.id == id))
                .and_then(|pid| processes.end(pid, &id));
            // Also without a PID: a runtime that reports none would be queried again and again.
            exits.queried.insert(id.clone());
            let uid = tracked.uid.clone();
            self.ends
                .extend(end.map(|end| end.map(|code| (uid, id, code)).boxed()));
        }
        self.watched
            .set(self.ends.len().try_into().unwrap_or(i64::MAX));
        exits.query_pids = false;
        exits
            .queried
            .retain(|id| running().any(|found| found.id == *id));
        let unqueried = running().any(|found| !exits.queried.contains(&found.id));
        if unqueried && self.unqueried.insert(tracked.uid.clone()) {
            let since = *self.unqueried_since.get_or_insert(now);
            // Each newcomer postpones the queries, so that a burst of starts is over before them;
            // `QUERY_BY` bounds that.
            self.query_at = Some((now + self.pid_query_idle).min(since + QUERY_BY).max(now));
        }
    }

    /// Marks the next pod for a query of its PIDs, if one is due.
    pub(super) fn query_next_pod(&mut self, handle: &PlegHandle, now: Instant) {
        if self.query_at.is_none_or(|at| at > now) {
            return;
        }
        let uid = self.unqueried.pop_first();
        if let Some(tracked) = uid.and_then(|uid| handle.shared.known(&uid)) {
            handle.mark_pod(&tracked, InspectionCause::Recheck, |pending| {
                pending.unsettled.kernel_exits.query_pids = true;
            });
        }
        self.query_at = (!self.unqueried.is_empty()).then(|| now + PAUSE);
        self.unqueried_since = self.unqueried_since.filter(|_| self.query_at.is_some());
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
            self.mark_pod(&tracked, InspectionCause::Kernel, |pending| {
                let at = self.shared.clock.now();
                let gone = LostProcess {
                    since: Instant::now(),
                    end: code.map(|code| KernelExit { code, at }),
                };
                pending.unsettled.kernel_exits.gone.insert(id.clone(), gone);
            });
        }
    }

    /// Counts exits that the runtime has lost since the previous observation.
    pub(super) fn count_lost(&self, tracked: &TrackedPod, old: &ObservedPod, new: &ObservedPod) {
        let is_lost = |found: &&ObservedContainer| found.process == ProcessState::Lost;
        for found in new.containers.iter().filter(is_lost) {
            let mut known = old.containers.iter().filter(is_lost);
            if !known.any(|before| before.id == found.id) {
                self.shared.metrics.pleg.lost_ends.inc();
                warn!(
                    pod = %tracked.uid, container = %found.name, id = %found.id,
                    "Runtime reports a running container whose process has exited"
                );
            }
        }
    }
}
