//! Ctrl-C and SIGTERM: clean up, then exit.

use anyhow::{Context, Result, bail};
use rubelet_testbed::sweep::sweep_own;
use tokio::signal::unix::{SignalKind, signal};

/// Runs `work`; if a signal interrupts it, removes all test bed instances of this program and
/// exits.
pub(crate) fn cleaning_up(work: impl FnOnce() -> Result<()> + Send + 'static) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start an async runtime")?;
    let ended = runtime.block_on(async {
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut terminate = signal(SignalKind::terminate())?;
        let mut work = tokio::task::spawn_blocking(work);
        tokio::select! {
            done = &mut work => Some(done).transpose().context("the work panicked"),
            _ = interrupt.recv() => Ok(None),
            _ = terminate.recv() => Ok(None),
        }
    });
    // If the work still runs, it ends with the process.
    runtime.shutdown_background();
    if let Some(result) = ended? {
        return result;
    }
    eprintln!("interrupted: cleaning up");
    sweep_own()?;
    bail!("interrupted")
}
