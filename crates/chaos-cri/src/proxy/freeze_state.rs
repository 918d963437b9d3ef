//! A connection that can be frozen: it stays open, without transfer of data.

use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use parking_lot::Mutex;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::UnixStream,
    time::{Instant, Sleep, sleep_until},
};

/// The time until which a connection is frozen.
#[derive(Debug, Clone, Default)]
pub(super) struct FreezeState(Arc<Mutex<Option<Instant>>>);

impl FreezeState {
    pub(super) fn freeze(&self, span: Duration) {
        *self.0.lock() = Some(Instant::now() + span);
    }

    fn frozen_until(&self) -> Option<Instant> {
        let mut until = self.0.lock();
        if until.is_some_and(|until| until <= Instant::now()) {
            *until = None;
        }
        *until
    }
}

/// The stream of a connection that can be frozen.
pub(super) struct FreezableStream {
    stream: UnixStream,
    freeze_state: FreezeState,
    reading: Option<Pin<Box<Sleep>>>,
    writing: Option<Pin<Box<Sleep>>>,
}

impl FreezableStream {
    pub(super) fn new(stream: UnixStream, freeze_state: FreezeState) -> Self {
        Self {
            stream,
            freeze_state,
            reading: None,
            writing: None,
        }
    }
}

/// Ready when the connection is not frozen; otherwise wakes the task when the freeze ends.
fn poll_thawed(
    freeze_state: &FreezeState,
    sleep: &mut Option<Pin<Box<Sleep>>>,
    cx: &mut Context<'_>,
) -> Poll<()> {
    while let Some(until) = freeze_state.frozen_until() {
        let waiting = sleep.insert(Box::pin(sleep_until(until)));
        if waiting.as_mut().poll(cx).is_pending() {
            return Poll::Pending;
        }
    }
    *sleep = None;
    Poll::Ready(())
}

impl AsyncRead for FreezableStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        std::task::ready!(poll_thawed(&this.freeze_state, &mut this.reading, cx));
        Pin::new(&mut this.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for FreezableStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = &mut *self;
        std::task::ready!(poll_thawed(&this.freeze_state, &mut this.writing, cx));
        Pin::new(&mut this.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
