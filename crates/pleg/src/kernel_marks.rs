//! Reports of the kernel on one pod's processes, as part of its record.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use jiff::Timestamp;
use rubelet_base::ContainerId;
use rubelet_pod_plan::{
    ContainerPhase, ObservedContainer, ObservedPod, ProcessState, observed::Exit,
};
use tokio::time::Instant;

/// The first recheck of a container whose process is gone without an event; each further one comes
/// after twice the time.
const FIRST_LOOK: Duration = Duration::from_millis(100);
/// A runtime that has not reported an exit after this time has most likely lost it.
const LOST: Duration = Duration::from_secs(10);
/// Longest pause between two rechecks of a container whose exit is lost.
const LOST_MAX: Duration = Duration::from_secs(300);

/// Reports of the kernel on one pod's containers.
#[derive(Debug, Default)]
pub(super) struct KernelMarks {
    /// Query processes in the next inspection.
    pub(super) ask: bool,
    /// Containers whose process was queried.
    pub(super) asked: BTreeSet<ContainerId>,
    /// Those whose process is gone.
    pub(super) gone: BTreeMap<ContainerId, LostProcess>,
}

impl KernelExit {
    /// The exit of a container that the runtime reports as running, with the reasons that runtimes
    /// use.
    pub(super) fn exit(self, phase: &ContainerPhase, message: String) -> Option<Exit> {
        let &ContainerPhase::Running { started_at } = phase else {
            return None;
        };
        let reason = if self.code == 0 { "Completed" } else { "Error" };
        Some(Exit {
            code: self.code,
            reason: reason.into(),
            message: message.into(),
            started_at: Some(started_at),
            finished_at: self.at.max(started_at),
        })
    }
}

/// A process that is gone.
#[derive(Debug, Clone, Copy)]
pub(super) struct LostProcess {
    pub(super) since: Instant,
    pub(super) end: Option<KernelExit>,
}

/// The exit of a process, as the kernel reports it.
#[derive(Debug, Clone, Copy)]
pub(super) struct KernelExit {
    /// 128 + signal for signals.
    pub(super) code: i32,
    /// When it was reported.
    pub(super) at: Timestamp,
}

impl KernelMarks {
    /// Whether an inspection has to query the process of this container.
    pub(super) fn asks(&self, found: &ObservedContainer) -> bool {
        self.ask && runs(found) && !self.asked.contains(&found.id)
    }

    /// How the process exited of a container that the runtime reports as running.
    pub(super) fn end_of(&self, found: &ObservedContainer) -> Option<KernelExit> {
        self.gone.get(&found.id)?.end.filter(|_| runs(found))
    }

    /// Adds the kernel's reports to an observation; returns when to inspect again, if that is
    /// needed.
    pub(super) fn note(&mut self, pod: &mut ObservedPod, now: Instant) -> Option<Instant> {
        if self.gone.is_empty() {
            return None;
        }
        let known = std::mem::take(&mut self.gone);
        let mut again: Option<Instant> = None;
        for found in pod.containers.iter_mut().filter(|found| runs(found)) {
            let Some(&gone) = known.get(&found.id) else {
                continue;
            };
            self.gone.insert(found.id.clone(), gone);
            let since = gone.since;
            let age = now.saturating_duration_since(since);
            let (process, at) = if age < LOST {
                // The runtime's event may be the one that is lost, or it may have none.
                (ProcessState::Gone, since + (age * 2 + FIRST_LOOK).min(LOST))
            } else {
                (ProcessState::Lost, now + age.clamp(LOST, LOST_MAX))
            };
            found.process = process;
            again = Some(again.map_or(at, |earlier| earlier.min(at)));
        }
        again
    }
}

/// Whether the runtime reports the container as running.
pub(super) fn runs(found: &ObservedContainer) -> bool {
    matches!(found.phase, ContainerPhase::Running { .. })
}
