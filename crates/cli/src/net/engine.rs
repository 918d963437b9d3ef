//! Runs a probe in a thread of its own and hands its reports over, until it ends or a signal ends it.

use std::{
    io,
    ops::ControlFlow,
    os::fd::{AsFd as _, BorrowedFd},
    thread::{self, JoinHandle},
};

use rubelet_netprobe::wait::{StopHandle, stop_pair};
use tokio::sync::mpsc;

use crate::{failure::CommandError, signals::EndSignals};

/// Reports that may wait to be shown.
const WAITING: usize = 1024;

/// A probe that runs.
pub(super) struct Engine {
    events: mpsc::Receiver<String>,
    stop: Option<StopHandle>,
    thread: JoinHandle<anyhow::Result<()>>,
    signals: EndSignals,
}

/// Delivers a line; breaks when the reader is gone.
pub(super) type Report<'a> = &'a mut dyn FnMut(String) -> ControlFlow<()>;

impl Engine {
    /// Starts one. `run` gets a descriptor that becomes readable when it is to stop.
    pub(super) fn start(
        run: impl FnOnce(BorrowedFd<'_>, Report<'_>) -> anyhow::Result<()> + Send + 'static,
    ) -> io::Result<Self> {
        let signals = EndSignals::catch()?;
        let (stop, signal) = stop_pair()?;
        let (sender, events) = mpsc::channel(WAITING);
        let thread = thread::Builder::new()
            .name("netprobe".to_owned())
            .spawn(move || {
                let mut report = |event| match sender.blocking_send(event) {
                    Ok(()) => ControlFlow::Continue(()),
                    Err(_) => ControlFlow::Break(()),
                };
                run(signal.as_fd(), &mut report)
            })?;
        Ok(Self {
            events,
            stop: Some(stop),
            thread,
            signals,
        })
    }

    /// The next report; `None` at the end. A signal stops the probe, which then reports its results.
    ///
    /// Cancel safe: both branches are.
    pub(super) async fn next(&mut self) -> Option<String> {
        loop {
            tokio::select! {
                event = self.events.recv() => return event,
                _ = self.signals.next(), if self.stop.is_some() => self.stop = None,
            }
        }
    }

    /// Waits for the end of the thread.
    pub(super) fn finish(self) -> Result<(), CommandError> {
        drop((self.stop, self.events));
        let ended = self.thread.join();
        let ended = ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        Ok(ended?)
    }
}
