//! The second source of exits: the kernel. Some runtimes tell the end of a container long after its
//! process has ended; containerd first lets `runc` clean up. The kernel tells it at once, and asks
//! for nothing in between. Its word is a fact beside what the runtime says: the pod is inspected
//! then, and its record says that the process is gone, but not that the container has ended, nor
//! how. It also finds what no question to the runtime can: an end that the runtime has lost.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use futures_util::{FutureExt as _, StreamExt as _, future::BoxFuture, stream::FuturesUnordered};
use prometheus::IntGauge;
use rubelet_base::{ContainerId, PodUid};
use rubelet_pod_plan::{ContainerPhase, ObservedContainer, ObservedPod, Process};
use tokio::time::Instant;
use tracing::warn;

use super::{
    cause::Cause,
    cell::{Marks, PodCell},
    handle::PlegHandle,
};
use crate::processes::Processes;

/// [`PlegSettings::rest`](super::PlegSettings) of a node at work.
pub const REST: Duration = Duration::from_secs(2);
/// But they don't wait longer than this for that.
const ASK_BY: Duration = Duration::from_secs(30);
/// The pause between two pods.
const PAUSE: Duration = Duration::from_millis(20);
/// The first look at a container whose process is gone and of which no event came; then each takes
/// twice as long to come.
const FIRST_LOOK: Duration = Duration::from_millis(100);
/// A runtime that has not told an end for so long has lost it, as far as anyone can say.
const LOST: Duration = Duration::from_secs(10);
/// Longest pause between two looks at a container whose end is lost.
const LOST_MAX: Duration = Duration::from_secs(300);

/// What the kernel says of one pod's containers.
#[derive(Debug, Default)]
pub(super) struct KernelMarks {
    /// Ask for processes in the next inspection.
    ask: bool,
    /// Containers whose process was asked for.
    asked: BTreeSet<ContainerId>,
    /// Those whose process is gone, and since when.
    gone: BTreeMap<ContainerId, Instant>,
}

impl KernelMarks {
    /// Whether an inspection is to ask for the process of this container.
    pub(super) fn asks(&self, found: &ObservedContainer) -> bool {
        self.ask && runs(found) && !self.asked.contains(&found.id)
    }

    /// Adds to an observation what the kernel says; when to look again, if that is needed.
    pub(super) fn note(&mut self, pod: &mut ObservedPod, now: Instant) -> Option<Instant> {
        if self.gone.is_empty() {
            return None;
        }
        let known = std::mem::take(&mut self.gone);
        let mut again: Option<Instant> = None;
        for found in pod.containers.iter_mut().filter(|found| runs(found)) {
            let Some(&since) = known.get(&found.id) else {
                continue;
            };
            self.gone.insert(found.id.clone(), since);
            let age = now.saturating_duration_since(since);
            let (process, at) = if age < LOST {
                // The runtime's event may be the one that is lost, or it may have none.
                (Process::Gone, since + (age * 2 + FIRST_LOOK).min(LOST))
            } else {
                (Process::Lost, now + age.clamp(LOST, LOST_MAX))
            };
            found.process = process;
            again = Some(again.map_or(at, |earlier| earlier.min(at)));
        }
        again
    }
}

/// Watches processes.
pub(super) struct Kernel {
    processes: Option<Arc<dyn Processes>>,
    rest: Duration,
    ends: FuturesUnordered<BoxFuture<'static, (PodUid, ContainerId)>>,
    /// Pods with containers whose processes are not known.
    unasked: BTreeSet<PodUid>,
    /// Since when there are some.
    unasked_since: Option<Instant>,
    /// When the next one is asked for its processes.
    ask_at: Option<Instant>,
    watched: IntGauge,
}

impl Kernel {
    pub(super) fn new(
        processes: Option<Arc<dyn Processes>>,
        rest: Duration,
        watched: IntGauge,
    ) -> Self {
        Self {
            processes,
            rest,
            ends: FuturesUnordered::new(),
            unasked: BTreeSet::new(),
            unasked_since: None,
            ask_at: None,
            watched,
        }
    }

    /// The next process that ends; `None` at once if none is watched.
    pub(super) async fn ended(&mut self) -> Option<(PodUid, ContainerId)> {
        let ended = self.ends.next().await;
        self.watched
            .set(self.ends.len().try_into().unwrap_or(i64::MAX));
        ended
    }

    /// When to ask for processes.
    pub(super) fn next(&self) -> Option<Instant> {
        self.ask_at
    }

    /// Takes note of what an inspection saw, and watches the processes that it was told.
    pub(super) fn note(
        &mut self,
        cell: &PodCell,
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
            marks.asked.insert(id.clone());
            let uid = cell.uid.clone();
            self.ends
                .extend(end.map(|end| end.map(|()| (uid, id)).boxed()));
        }
        self.watched
            .set(self.ends.len().try_into().unwrap_or(i64::MAX));
        marks.ask = false;
        marks
            .asked
            .retain(|id| running().any(|found| found.id == *id));
        let unasked = running().any(|found| !marks.asked.contains(&found.id));
        if unasked && self.unasked.insert(cell.uid.clone()) {
            let since = *self.unasked_since.get_or_insert(now);
            self.ask_at = Some((now + self.rest).min(since + ASK_BY).max(now));
        }
    }

    /// Has the next pod inspected for its processes, if it is time.
    pub(super) fn ask(&mut self, handle: &PlegHandle, now: Instant) {
        if self.ask_at.is_none_or(|at| at > now) {
            return;
        }
        let uid = self.unasked.pop_first();
        if let Some(cell) = uid.and_then(|uid| handle.shared.known(&uid)) {
            handle.mark_cell(&cell, Cause::Recheck, |marks| marks.kernel.ask = true);
        }
        self.ask_at = (!self.unasked.is_empty()).then(|| now + PAUSE);
        self.unasked_since = self.unasked_since.filter(|_| self.ask_at.is_some());
    }
}

impl PlegHandle {
    /// The kernel says that this container's process is gone. Where the runtime has told the end
    /// already, that is no news.
    pub(super) fn process_ended(&self, uid: &PodUid, id: &ContainerId) {
        let Some(cell) = self.shared.known(uid) else {
            return;
        };
        let seen = Arc::clone(&cell.observation.borrow().pod);
        let runs = |found: &ObservedContainer| found.id == *id && runs(found);
        if seen.containers.iter().any(runs) {
            self.shared.metrics.pleg.process_ends.inc();
            self.mark_cell(&cell, Cause::Kernel, |marks| {
                marks.kernel.gone.insert(id.clone(), Instant::now());
            });
        }
    }

    /// Counts the ends that the runtime has lost since the observation before.
    pub(super) fn count_lost(&self, cell: &PodCell, old: &ObservedPod, new: &ObservedPod) {
        let is_lost = |found: &&ObservedContainer| found.process == Process::Lost;
        for found in new.containers.iter().filter(is_lost) {
            let mut known = old.containers.iter().filter(is_lost);
            if !known.any(|before| before.id == found.id) {
                self.shared.metrics.pleg.lost_ends.inc();
                warn!(
                    pod = %cell.uid, container = %found.name, id = %found.id,
                    "The runtime says that a container runs, but its process is gone"
                );
            }
        }
    }
}

fn runs(found: &ObservedContainer) -> bool {
    matches!(found.phase, ContainerPhase::Running { .. })
}
