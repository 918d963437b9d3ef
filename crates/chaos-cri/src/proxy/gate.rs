//! A connection that can be frozen: it stays open, and neither takes nor gives a byte.

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

/// Until when a connection is frozen.
#[derive(Debug, Clone, Default)]
pub(super) struct Gate(Arc<Mutex<Option<Instant>>>);

impl Gate {
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

/// The bytes of a connection behind a gate.
pub(super) struct Gated {
    stream: UnixStream,
    gate: Gate,
    reading: Option<Pin<Box<Sleep>>>,
    writing: Option<Pin<Box<Sleep>>>,
}

impl Gated {
    pub(super) fn new(stream: UnixStream, gate: Gate) -> Self {
        Self {
            stream,
            gate,
            reading: None,
            writing: None,
        }
    }
}

/// Ready when the gate is open; else wakes when it opens.
fn open(gate: &Gate, sleep: &mut Option<Pin<Box<Sleep>>>, cx: &mut Context<'_>) -> Poll<()> {
    while let Some(until) = gate.frozen_until() {
        let waiting = sleep.insert(Box::pin(sleep_until(until)));
        if waiting.as_mut().poll(cx).is_pending() {
            return Poll::Pending;
        }
    }
    *sleep = None;
    Poll::Ready(())
}

impl AsyncRead for Gated {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        std::task::ready!(open(&this.gate, &mut this.reading, cx));
        Pin::new(&mut this.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Gated {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = &mut *self;
        std::task::ready!(open(&this.gate, &mut this.writing, cx));
        Pin::new(&mut this.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
