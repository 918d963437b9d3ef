//! Exits of one pod's containers that the kernel reported and the runtime has not, as part of the
//! pod's record.

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

/// Delay of the first recheck of a container whose process is gone without an event; it doubles
/// with each further one.
const FIRST_LOOK: Duration = Duration::from_millis(100);
/// A runtime that has not reported an exit after this time has most likely lost it.
const LOST: Duration = Duration::from_secs(10);
/// Longest pause between two rechecks of a container whose exit is lost.
const LOST_MAX: Duration = Duration::from_secs(300);

/// Exits of one pod's containers that the kernel reported.
#[derive(Debug, Default)]
pub(super) struct KernelExits {
    /// True if the next inspection queries PIDs.
    pub(super) query_pids: bool,
    /// Containers whose PID was queried.
    pub(super) queried: BTreeSet<ContainerId>,
    /// Containers whose process is gone.
    pub(super) gone: BTreeMap<ContainerId, LostProcess>,
}

impl KernelExit {
    /// The exit of a container that the runtime reports as running, with the reason that runtimes
    /// use for this exit code.
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
    /// Time at which the kernel reported it.
    pub(super) at: Timestamp,
}

impl KernelExits {
    /// True if the inspection has to query the PID of this container.
    pub(super) fn needs_pid(&self, found: &ObservedContainer) -> bool {
        self.query_pids && runs(found) && !self.queried.contains(&found.id)
    }

    /// The exit of the process of a container that the runtime reports as running.
    pub(super) fn end_of(&self, found: &ObservedContainer) -> Option<KernelExit> {
        self.gone.get(&found.id)?.end.filter(|_| runs(found))
    }

    /// Adds the kernel's reports to an observation; returns the time of the next inspection, if one
    /// is needed.
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
                // The runtime's event may be lost, or the runtime may have no events.
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

/// True if the runtime reports the container as running.
pub(super) fn runs(found: &ObservedContainer) -> bool {
    matches!(found.phase, ContainerPhase::Running { .. })
}
