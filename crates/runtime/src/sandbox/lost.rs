//! The end of a supervisor that nobody asked for: its pod ends with it.

use std::sync::Arc;

use rubelet_cri::v1::ContainerEventType;
use rubelet_runtime_plan::{record::ExitRecord, state::SandboxPhase};
use rubelet_shim::exit_record;

use super::{Sandbox, reports, stop};
use crate::{
    clock,
    container::{Container, end},
    engine::Engine,
    fault::Outcome,
    recover::shims::{PATIENCE, connect_one},
};

/// Why a container is gone whose supervisor is.
const MESSAGE: &str = "the supervisor of the pod died, and the container was killed with it";

/// Kills what is left of the pod, takes down how its containers ended, and gives back what the pod
/// held.
pub(crate) async fn lost(engine: Arc<Engine>, sandbox: Arc<Sandbox>, reason: String) {
    if reconnect(&engine, &sandbox).await {
        tracing::warn!(
            sandbox = sandbox.id,
            reason,
            "the connection to a supervisor broke and was made anew"
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
    sandbox.forget_execs();
    if phase == SandboxPhase::Creating {
        // Whoever makes the sandbox undoes it.
        return;
    }
    tracing::error!(
        sandbox = sandbox.id,
        reason,
        "the supervisor of a pod is gone: the pod is stopped"
    );
    if phase == SandboxPhase::Ready {
        engine.tell_sandbox(ContainerEventType::ContainerStoppedEvent, &sandbox);
    }
    // A creation that runs fails by itself, as it has nobody to talk to; then this has the sandbox
    // alone.
    let _alone = sandbox.calls.write().await;
    // One that hangs must not go on without anybody who knows it.
    if let Some(link) = sandbox.take_link() {
        link.kill();
        engine.reap(&link).await;
    }
    for container in sandbox.members() {
        if let Err(fault) = bury(&engine, &container).await {
            tracing::warn!(container = container.id, %fault, "a container of a lost pod is not gone");
        }
    }
    if let Err(fault) = stop::release(&engine, &sandbox).await {
        tracing::warn!(sandbox = sandbox.id, %fault, "a lost pod left something behind");
    }
    engine.save_sandbox_later(&sandbox);
}

/// It may be that only the connection broke. What was reported meanwhile is reported again.
async fn reconnect(engine: &Arc<Engine>, sandbox: &Arc<Sandbox>) -> bool {
    if !sandbox.link_of_live_process() {
        return false;
    }
    let dir = engine.layout.sandbox(&sandbox.id).path().to_owned();
    let reporter = reports::reporter(engine, sandbox);
    match tokio::time::timeout(PATIENCE, connect_one(dir, reporter)).await {
        Ok(Ok(Some(shim))) => {
            sandbox.set_link(shim.link);
            true
        }
        _ => false,
    }
}

/// Kills what is left of a container, and takes down how it ended.
pub(crate) async fn bury(engine: &Arc<Engine>, container: &Arc<Container>) -> Outcome<()> {
    if container.has_ended() {
        return Ok(());
    }
    let cgroup = container.cgroup()?;
    let cleared = engine.clear_cgroup(&cgroup).await;
    let bundle = engine
        .layout
        .sandbox(&container.sandbox.id)
        .bundle(&container.id);
    let seen = engine
        .blocking(move || Ok(exit_record::read(&bundle).ok().flatten()))
        .await?;
    match seen {
        Some(exit) => end::seen(engine, container, &exit),
        None => {
            let exit = ExitRecord::unknown(clock::now_ns(), MESSAGE);
            end::take_down(engine, container, exit);
        }
    }
    cleared
}
