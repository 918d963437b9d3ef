//! The unexpected exit of a shim: its pod is stopped.

use std::sync::Arc;

use rubelet_cri::v1::ContainerEventType;
use rubelet_runtime_plan::state::SandboxPhase;

use super::{Sandbox, stop};
use crate::{
    container::orphan::kill_orphan,
    engine::Engine,
    live_shim::{self, CONNECT_TIMEOUT},
    shim_client::ShimEventHandler,
};

/// Kills the remaining processes of the pod, records the exits of its containers, and releases its
/// resources. If only the connection broke, it reconnects, and `on_event` handles further events.
pub(crate) async fn handle(
    engine: Arc<Engine>,
    sandbox: Arc<Sandbox>,
    reason: String,
    on_event: ShimEventHandler,
) {
    if reconnect(&engine, &sandbox, on_event).await {
        tracing::warn!(
            sandbox = sandbox.id,
            reason,
            "Reconnected to the shim of a pod after the connection broke"
        );
        return;
    }
    let phase = sandbox.change(|record| {
        let phase = record.phase;
        if matches!(phase, SandboxPhase::Ready | SandboxPhase::Creating) {
            record.phase = SandboxPhase::NotReady;
        }
        phase
    });
    sandbox.waiters.forget_execs();
    if phase == SandboxPhase::Creating {
        // RunPodSandbox is in progress; it fails and rolls back.
        return;
    }
    tracing::error!(
        sandbox = sandbox.id,
        reason,
        "The shim of a pod exited; stopping the pod"
    );
    if phase == SandboxPhase::Ready {
        engine.publish_sandbox(ContainerEventType::ContainerStoppedEvent, &sandbox);
    }
    // A CreateContainer in progress fails without the shim and releases its read lock. From then on
    // no other call changes the sandbox.
    let _exclusive = sandbox.lock_exclusively().await;
    // The process may hang instead of having exited, and would keep its namespaces unnoticed.
    if let Some(link) = sandbox.take_link() {
        link.kill();
        engine.reap(&link).await;
    }
    for container in sandbox.members() {
        if let Err(error) = kill_orphan(&engine, &container).await {
            tracing::warn!(container = container.id, %error, "Failed to kill a container after its shim exited");
        }
    }
    if let Err(error) = stop::release(&engine, &sandbox).await {
        tracing::warn!(sandbox = sandbox.id, %error, "Failed to release the resources of a pod after its shim exited");
    }
    engine.save_sandbox_later(&sandbox);
}

/// Reconnects if only the connection broke. The shim then repeats the events that were not
/// acknowledged.
async fn reconnect(
    engine: &Arc<Engine>,
    sandbox: &Arc<Sandbox>,
    on_event: ShimEventHandler,
) -> bool {
    if !sandbox.shim_process_lives() {
        return false;
    }
    let dir = engine.layout.sandbox(&sandbox.id).path().to_owned();
    match tokio::time::timeout(CONNECT_TIMEOUT, live_shim::connect(dir, on_event)).await {
        Ok(Ok(Some(shim))) => {
            sandbox.set_link(shim.link);
            true
        }
        _ => false,
    }
}
