//! What becomes of a sandbox, and the order of the steps.

use super::{RecoveryInput, Step};
use crate::{record::SandboxRecord, state::SandboxPhase};

/// The decision about a sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RecoveryDecision {
    /// It continues.
    Adopt,
    /// It stays as one that is not ready.
    Stop(&'static str),
    /// It goes.
    Discard(&'static str),
}

/// Steps in the order of their kinds.
#[derive(Default)]
pub(super) struct Steps {
    kinds: [Vec<super::Planned>; KINDS],
}

const KINDS: usize = 8;

impl Steps {
    pub(super) fn add(&mut self, sandbox: &str, step: Step, why: &'static str) {
        let kind = match step {
            Step::Adopt { .. } => 0,
            Step::EndShim { .. } | Step::DeleteInShim { .. } => 1,
            Step::KillCgroup(_) => 2,
            Step::MarkRunning { .. } | Step::MarkExited { .. } | Step::MarkNotReady { .. } => 3,
            Step::FreeNetwork { .. } => 4,
            Step::Unmount(_) => 5,
            Step::RemoveDirectory(_) | Step::RemoveSnapshot { .. } => 6,
            Step::RemoveContainer { .. } | Step::RemoveSandbox { .. } => 7,
        };
        let sandbox = sandbox.to_owned();
        let planned = super::Planned { sandbox, step, why };
        if !self.kinds[kind]
            .iter()
            .any(|known| known.step == planned.step)
        {
            self.kinds[kind].push(planned);
        }
    }

    pub(super) fn in_order(self) -> Vec<super::Planned> {
        self.kinds.into_iter().flatten().collect()
    }
}

/// The decision about a sandbox with a record.
pub(super) fn fate(found: &RecoveryInput<'_>, record: &SandboxRecord) -> RecoveryDecision {
    let lives = record.boot_id == found.boot_id && found.shims.contains_key(&record.id);
    match record.phase {
        SandboxPhase::Creating => RecoveryDecision::Discard("it was not made completely"),
        SandboxPhase::Removing => RecoveryDecision::Discard("its removal was cut off"),
        SandboxPhase::Ready if lives => RecoveryDecision::Adopt,
        SandboxPhase::Ready if record.boot_id != found.boot_id => {
            RecoveryDecision::Stop("it is of an earlier boot of the host")
        }
        SandboxPhase::Ready => RecoveryDecision::Stop("its shim is gone"),
        SandboxPhase::NotReady => RecoveryDecision::Stop("it was stopped"),
    }
}

/// The decision about the sandbox of that identifier; without a record it is discarded.
pub(super) fn fate_of(found: &RecoveryInput<'_>, sandbox: &str) -> RecoveryDecision {
    match found.sandboxes.get(sandbox) {
        Some(record) => fate(found, record),
        None => RecoveryDecision::Discard("nobody knows its sandbox"),
    }
}
