//! Observers of calls, mostly for metrics.

use std::time::Duration;

use rubelet_cri::{ChangedObject, CriErrorKind};

/// Observes the end of each call.
pub trait CallObserver: Send + Sync + 'static {
    /// `call` is the RPC as the proto names it, `took` the time from the caller's request to the
    /// response. A call whose future was dropped ends as [`CriErrorKind::Canceled`].
    ///
    /// Runs on the caller's task: it must not block.
    fn call_ended(&self, call: &'static str, took: Duration, outcome: Result<(), CriErrorKind>);

    /// A call that changes `changed` succeeded or failed after [`Self`] observed its end: its
    /// deadline had passed, or its future was dropped.
    fn answered_late(
        &self,
        call: &'static str,
        changed: &ChangedObject,
        outcome: Result<(), CriErrorKind>,
    ) {
        let _ = (call, changed, outcome);
    }
}

/// Observes nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct IgnoreCalls;

impl CallObserver for IgnoreCalls {
    fn call_ended(&self, _: &'static str, _: Duration, _: Result<(), CriErrorKind>) {}
}
