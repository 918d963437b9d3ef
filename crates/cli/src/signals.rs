//! Signals that would terminate the program, for commands that must clean up first.

use std::{future::poll_fn, io, task::Poll};

use tokio::signal::unix::{Signal, SignalKind, signal};

/// The signals that terminate a program by default, as users and systems send them.
const KINDS: [SignalKind; 4] = [
    SignalKind::hangup(),
    SignalKind::interrupt(),
    SignalKind::quit(),
    SignalKind::terminate(),
];

/// Catches these signals from now on; they no longer terminate the program.
pub(super) struct EndSignals(Vec<(SignalKind, Signal)>);

impl EndSignals {
    pub(super) fn catch() -> io::Result<Self> {
        let caught = KINDS.into_iter().map(|kind| Ok((kind, signal(kind)?)));
        Ok(Self(caught.collect::<io::Result<_>>()?))
    }

    /// Waits for a signal; returns the exit code that shells use for it. Cancel safe.
    pub(super) async fn next(&mut self) -> u8 {
        poll_fn(|context| {
            for (kind, signal) in &mut self.0 {
                if signal.poll_recv(context).is_ready() {
                    let number = u8::try_from(kind.as_raw_value()).unwrap_or_default();
                    return Poll::Ready(128_u8.saturating_add(number));
                }
            }
            Poll::Pending
        })
        .await
    }
}
