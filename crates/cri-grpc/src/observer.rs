//! Who wants to know about every call: metrics, mostly.

use std::time::Duration;

use rubelet_cri::{Changed, CriErrorKind};

/// Is told of each call when it ends.
pub trait CallObserver: Send + Sync + 'static {
    /// `call` is the RPC as the proto names it, `took` the time from the caller's request to the
    /// answer. A call whose future was dropped ends as [`CriErrorKind::Canceled`].
    ///
    /// Runs on the caller's task: it must not block.
    fn call_ended(&self, call: &'static str, took: Duration, outcome: Result<(), CriErrorKind>);

    /// A call that changes `changed` was answered, or failed, after its end had been told: its
    /// deadline had passed, or its future was dropped.
    fn answered_late(
        &self,
        call: &'static str,
        changed: &Changed,
        outcome: Result<(), CriErrorKind>,
    ) {
        let _ = (call, changed, outcome);
    }
}

/// The observer of a client that nobody watches.
#[derive(Debug, Clone, Copy, Default)]
pub struct IgnoreCalls;

impl CallObserver for IgnoreCalls {
    fn call_ended(&self, _: &'static str, _: Duration, _: Result<(), CriErrorKind>) {}
}
