//! `StopContainer`: the stop signal, the grace period, the kill.

use std::{sync::Arc, time::Duration};

use rubelet_cri::CriErrorKind;
use rubelet_runtime_plan::state::{ContainerCall, Verdict};
use rubelet_shim::protocol::{Call, SignalTarget};

use super::Container;
use crate::{
    engine::Engine,
    fault::{Fault, Outcome},
    sandbox::lost,
};

const SIGKILL: i32 = 9;

/// How long a container may take to be gone that was killed. One that hangs in the kernel may need
/// for ever; the caller comes again.
const DYING: Duration = Duration::from_secs(10);

/// Asks the container to end, waits, kills. Any number of callers may wait for one container, each
/// with its own patience.
pub(crate) async fn stop(engine: Arc<Engine>, id: String, grace: i64) -> Outcome<()> {
    let Some(container) = engine.container(ContainerCall::Stop, &id)? else {
        return Ok(());
    };
    if container.verdict(ContainerCall::Stop)? == Verdict::Nothing {
        return Ok(());
    }
    let grace = Duration::from_secs(u64::try_from(grace).unwrap_or(0));
    if !grace.is_zero() {
        let signal = container.record().stop_signal;
        // A container that was never started has no program that could listen.
        if container.record().started_at != 0 {
            match send(&container, signal, SignalTarget::Init).await {
                Ok(()) => {
                    if container.wait_for_end(grace).await {
                        return Ok(());
                    }
                }
                Err(fault) => {
                    tracing::debug!(container = container.id, %fault, "the stop signal was not sent");
                }
            }
        }
    }
    kill(&engine, &container).await
}

/// Kills everything in the container and waits until its end was seen.
pub(crate) async fn kill(engine: &Arc<Engine>, container: &Arc<Container>) -> Outcome<()> {
    if container.has_ended() {
        return Ok(());
    }
    if let Err(fault) = send(container, SIGKILL, SignalTarget::Everyone).await {
        // It has ended, and that is about to be known.
        if container.wait_for_end(KNOWN).await {
            return Ok(());
        }
        if container.sandbox.live_link().is_some() {
            return Err(fault);
        }
        return lost::bury(engine, container).await;
    }
    if container.wait_for_end(DYING).await {
        return Ok(());
    }
    Err(Fault::new(
        CriErrorKind::DeadlineExceeded(DYING),
        format!(
            "container {:?} was killed and does not end within {} s; the kernel has it",
            container.id,
            DYING.as_secs()
        ),
    ))
}

/// How long an end that was seen may take to be on disk.
const KNOWN: Duration = Duration::from_secs(2);

async fn send(container: &Container, signal: i32, target: SignalTarget) -> Outcome<()> {
    let call = Call::Signal {
        id: container.id.clone(),
        signal,
        target,
    };
    container.sandbox.link()?.call(call).await.map(|_| ())
}
