//! Faults: calls that fail, or hang, before or after their effect.

mod lists;

use rubelet_cri::{CALLS, Code, CriErrorKind};

use crate::Subject;

pub use lists::ListFault;
use lists::ListFaults;
pub(crate) use lists::of_sandbox;

/// A failure to inject into calls of one RPC.
#[derive(Debug, Clone)]
pub struct Fault {
    pub(crate) call: String,
    pub(crate) subject: Subject,
    pub(crate) moment: Moment,
    pub(crate) kind: CriErrorKind,
    pub(crate) message: String,
    pub(crate) left: Option<usize>,
}

/// The point in a call at which a fault occurs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moment {
    Before,
    After,
}

impl Fault {
    /// The next call of this RPC (`RunPodSandbox`, `ListContainers`, ...) fails with the code
    /// `Unknown` and has no effect.
    ///
    /// # Panics
    /// There is no RPC of this name.
    #[must_use]
    pub fn of(call: &str) -> Self {
        known(call);
        Self {
            call: call.to_owned(),
            subject: Subject::any(),
            moment: Moment::Before,
            kind: CriErrorKind::Other(Code::Unknown),
            message: "injected failure".to_owned(),
            left: Some(1),
        }
    }

    /// Only calls about this subject.
    #[must_use]
    pub fn on(self, subject: Subject) -> Self {
        Self { subject, ..self }
    }

    /// The call has its effect, and then fails.
    #[must_use]
    pub fn after_effect(self) -> Self {
        Self {
            moment: Moment::After,
            ..self
        }
    }

    /// The error that the caller receives.
    #[must_use]
    pub fn error(self, kind: CriErrorKind, message: &str) -> Self {
        Self {
            kind,
            message: message.to_owned(),
            ..self
        }
    }

    /// This many calls instead of one.
    #[must_use]
    pub fn times(self, times: usize) -> Self {
        Self {
            left: Some(times),
            ..self
        }
    }

    /// All calls, until [`Sim::clear_faults`](crate::Sim::clear_faults).
    #[must_use]
    pub fn always(self) -> Self {
        Self { left: None, ..self }
    }
}

pub(crate) struct HangRule {
    pub(crate) key: u64,
    pub(crate) call: String,
    pub(crate) subject: Subject,
    pub(crate) moment: Moment,
    pub(crate) held: usize,
}

#[derive(Default)]
pub(crate) struct Faults {
    pub(crate) failures: Vec<Fault>,
    pub(crate) hangs: Vec<HangRule>,
    pub(crate) lists: ListFaults,
}

impl Faults {
    /// The failure for this call, if there is one; its count is decremented.
    pub(crate) fn failure(
        &mut self,
        call: &str,
        subject: &Subject,
        moment: Moment,
    ) -> Option<(CriErrorKind, String)> {
        let index = self.failures.iter().position(|fault| {
            fault.call == call && fault.moment == moment && fault.subject.matches(subject)
        })?;
        let fault = &mut self.failures[index];
        let failure = (fault.kind, fault.message.clone());
        if let Some(left) = &mut fault.left {
            *left = left.saturating_sub(1);
            if *left == 0 {
                self.failures.remove(index);
            }
        }
        Some(failure)
    }

    /// The hang that blocks this call, if there is one.
    pub(crate) fn hang(&self, call: &str, subject: &Subject, moment: Moment) -> Option<u64> {
        let mut rules = self.hangs.iter();
        let rule = rules.find(|rule| {
            rule.call == call && rule.moment == moment && rule.subject.matches(subject)
        });
        rule.map(|rule| rule.key)
    }

    pub(crate) fn held(&self, key: u64) -> usize {
        let mut rules = self.hangs.iter();
        rules
            .find(|rule| rule.key == key)
            .map_or(0, |rule| rule.held)
    }

    pub(crate) fn count_held(&mut self, key: u64, change: impl FnOnce(usize) -> usize) {
        if let Some(rule) = self.hangs.iter_mut().find(|rule| rule.key == key) {
            rule.held = change(rule.held);
        }
    }

    pub(crate) fn is_held(&self, key: u64) -> bool {
        self.hangs.iter().any(|rule| rule.key == key)
    }
}

/// A misspelled RPC in a test would otherwise be a fault that never occurs.
pub(crate) fn known(call: &str) {
    assert!(CALLS.contains(&call), "no RPC is called {call:?}");
}
