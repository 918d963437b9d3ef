//! `StopContainer`: the stop signal, the grace period, the kill.

use std::{sync::Arc, time::Duration};

use rubelet_cri::CriErrorKind;
use rubelet_runtime_plan::state::{CallDecision, ContainerCall};
use rubelet_shim::protocol::{Call, SignalTarget};

use super::{Container, orphan::kill_orphan};
use crate::{
    engine::Engine,
    error::{Result, RuntimeError},
};

const SIGKILL: i32 = 9;

/// Timeout for the exit after SIGKILL. A process in uninterruptible sleep may never exit; the
/// kubelet repeats the call.
const KILL_TIMEOUT: Duration = Duration::from_secs(10);

/// Sends the stop signal, waits for the grace period, kills. Concurrent calls may have different
/// grace periods.
pub(crate) async fn stop(engine: Arc<Engine>, id: String, grace: i64) -> Result<()> {
    let Some(container) = engine.container(ContainerCall::Stop, &id)? else {
        return Ok(());
    };
    if container.decision(ContainerCall::Stop)? == CallDecision::Nothing {
        return Ok(());
    }
    let grace = Duration::from_secs(u64::try_from(grace).unwrap_or(0));
    // The container is not locked: a call with a shorter grace period does not wait for this one.
    if !grace.is_zero() {
        let signal = container.record().stop_signal;
        // A container that was never started has no program that handles a signal.
        if container.record().started_at != 0 {
            match send(&container, signal, SignalTarget::Init).await {
                Ok(()) => {
                    if container.wait_for_exit(grace).await {
                        return Ok(());
                    }
                }
                Err(error) => {
                    tracing::debug!(container = container.id, %error, "Failed to send the stop signal");
                }
            }
        }
    }
    kill(&engine, &container).await
}

/// Kills all processes of the container and waits until its exit is recorded.
pub(crate) async fn kill(engine: &Arc<Engine>, container: &Arc<Container>) -> Result<()> {
    if container.has_exited() {
        return Ok(());
    }
    if let Err(error) = send(container, SIGKILL, SignalTarget::Everyone).await {
        // It has probably exited, and the exit is about to be recorded.
        if container.wait_for_exit(EXIT_RECORD_TIMEOUT).await {
            return Ok(());
        }
        if container.sandbox.live_link().is_some() {
            return Err(error);
        }
        return kill_orphan(engine, container).await;
    }
    if container.wait_for_exit(KILL_TIMEOUT).await {
        return Ok(());
    }
    Err(RuntimeError::new(
        CriErrorKind::DeadlineExceeded(KILL_TIMEOUT),
        format!(
            "container {:?} did not exit within {} s after SIGKILL; a process may be in uninterruptible sleep (state D)",
            container.id,
            KILL_TIMEOUT.as_secs()
        ),
    ))
}

/// Timeout until a reported exit is on disk.
const EXIT_RECORD_TIMEOUT: Duration = Duration::from_secs(2);

async fn send(container: &Container, signal: i32, target: SignalTarget) -> Result<()> {
    let call = Call::Signal {
        id: container.id.clone(),
        signal,
        target,
    };
    container.sandbox.link()?.call(call).await.map(|_| ())
}
