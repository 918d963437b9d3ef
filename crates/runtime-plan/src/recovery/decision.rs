//! The decision about a sandbox, and the order of the steps.

use super::{RecoveryInput, RecoveryStep};
use crate::{record::SandboxRecord, state::SandboxPhase};

/// The decision about a sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RecoveryDecision {
    /// The pod continues.
    Adopt,
    /// The sandbox is kept, not ready.
    Stop(&'static str),
    /// The sandbox is removed.
    Discard(&'static str),
}

/// Steps in the order of their kinds.
#[derive(Default)]
pub(super) struct RecoverySteps {
    kinds: [Vec<super::PlannedStep>; KINDS],
}

const KINDS: usize = 8;

impl RecoverySteps {
    pub(super) fn add(&mut self, sandbox: &str, step: RecoveryStep, why: &'static str) {
        let kind = match step {
            RecoveryStep::Adopt { .. } => 0,
            RecoveryStep::EndShim { .. } | RecoveryStep::DeleteInShim { .. } => 1,
            RecoveryStep::KillCgroup(_) => 2,
            RecoveryStep::MarkRunning { .. }
            | RecoveryStep::MarkExited { .. }
            | RecoveryStep::MarkNotReady { .. } => 3,
            RecoveryStep::FreeNetwork { .. } => 4,
            RecoveryStep::Unmount(_) => 5,
            RecoveryStep::RemoveDirectory(_) | RecoveryStep::RemoveSnapshot { .. } => 6,
            RecoveryStep::RemoveContainer { .. } | RecoveryStep::RemoveSandbox { .. } => 7,
        };
        let sandbox = sandbox.to_owned();
        let planned = super::PlannedStep { sandbox, step, why };
        if !self.kinds[kind]
            .iter()
            .any(|known| known.step == planned.step)
        {
            self.kinds[kind].push(planned);
        }
    }

    pub(super) fn in_order(self) -> Vec<super::PlannedStep> {
        self.kinds.into_iter().flatten().collect()
    }
}

/// The decision about a sandbox with a record.
pub(super) fn decide(found: &RecoveryInput<'_>, record: &SandboxRecord) -> RecoveryDecision {
    let lives = record.boot_id == found.boot_id && found.shims.contains_key(&record.id);
    match record.phase {
        SandboxPhase::Creating => RecoveryDecision::Discard("its creation was interrupted"),
        SandboxPhase::Removing => RecoveryDecision::Discard("its removal was interrupted"),
        SandboxPhase::Ready if lives => RecoveryDecision::Adopt,
        SandboxPhase::Ready if record.boot_id != found.boot_id => {
            RecoveryDecision::Stop("the host was rebooted")
        }
        SandboxPhase::Ready => RecoveryDecision::Stop("its shim has exited"),
        SandboxPhase::NotReady => RecoveryDecision::Stop("it was stopped"),
    }
}

/// The decision about the sandbox of that identifier; without a record it is discarded.
pub(super) fn decision_of(found: &RecoveryInput<'_>, sandbox: &str) -> RecoveryDecision {
    match found.sandboxes.get(sandbox) {
        Some(record) => decide(found, record),
        None => RecoveryDecision::Discard("its sandbox has no record"),
    }
}
