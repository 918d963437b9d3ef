//! `StopPodSandbox`, and the release of a sandbox's resources.

use std::{path::Path, sync::Arc, time::Duration};

use rubelet_cgroup_plan::CgroupPath;
use rubelet_cri::v1::ContainerEventType;
use rubelet_host::mount::{UnmountOutcome, unmount};
use rubelet_runtime_plan::state::{SandboxCall, SandboxPhase};
use rubelet_shim::protocol::Call;

use super::{Sandbox, network_request};
use crate::{
    container::{orphan::kill_orphan, scope, stop::kill},
    engine::Engine,
    error::{Result, RuntimeError},
};

/// Timeout for a shim's exit after it acknowledged the shutdown.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);

/// Kills the containers of the sandbox and releases its resources. The sandbox remains, not ready.
pub(crate) async fn stop(engine: Arc<Engine>, id: String) -> Result<()> {
    let Some(sandbox) = engine.sandbox(SandboxCall::Stop, &id)? else {
        return Ok(());
    };
    let _exclusive = sandbox.lock_exclusively().await;
    stop_locked(&engine, &sandbox).await
}

/// As [`stop`], for a caller that holds the sandbox's write lock.
pub(crate) async fn stop_locked(engine: &Arc<Engine>, sandbox: &Arc<Sandbox>) -> Result<()> {
    sandbox.decision(SandboxCall::Stop)?;
    for container in sandbox.members() {
        if sandbox.live_link().is_some() {
            kill(engine, &container).await?;
        } else {
            kill_orphan(engine, &container).await?;
        }
    }
    release(engine, sandbox).await?;
    let was_ready = sandbox.change(|record| {
        let was_ready = record.phase == SandboxPhase::Ready;
        if was_ready {
            record.phase = SandboxPhase::NotReady;
        }
        was_ready
    });
    if was_ready {
        engine.publish_sandbox(ContainerEventType::ContainerStoppedEvent, sandbox);
    }
    engine.save_sandbox(sandbox).await
}

/// Releases the network, the shim with its namespaces, mounts and cgroup. Idempotent.
pub(crate) async fn release(engine: &Arc<Engine>, sandbox: &Arc<Sandbox>) -> Result<()> {
    let record = sandbox.record();
    let dir = engine.layout.sandbox(&sandbox.id);
    // Before the shim goes: plugins need the network namespace that it holds.
    if record.network_held {
        let request = network_request(&record, dir.netns());
        engine.network.del(&request).await.map_err(|error| {
            RuntimeError::failed(format!(
                "cannot tear down the network of the sandbox: {error}"
            ))
        })?;
        sandbox.change(|record| {
            record.network_held = false;
            record.ips.clear();
        });
    }
    // Otherwise the exit of the shim would count as a crash.
    sandbox.expect_exit();
    if let Some(link) = sandbox.take_link() {
        let told = link.call(Call::Shutdown).await;
        let left = told.is_ok() && link.wait_for_exit(SHUTDOWN_TIMEOUT).await;
        if !left {
            link.kill();
        }
        engine.reap(&link).await;
    }
    // A killed shim leaves its mounts behind.
    let unmounts = [dir.netns(), dir.shm()];
    engine
        .blocking(move || unmounts.iter().try_for_each(|path| unmount_all(path)))
        .await?;
    if let Ok(cgroup) = CgroupPath::parse(&record.shim_cgroup) {
        engine.clear_cgroup(&cgroup).await?;
        if cgroup.name().ends_with(".scope") {
            scope::stop(cgroup.name().to_owned()).await?;
        }
    }
    Ok(())
}

/// Unmounts everything that is mounted on a path. Blocks.
pub(crate) fn unmount_all(path: &Path) -> Result<()> {
    loop {
        match unmount(path, true) {
            Ok(UnmountOutcome::Gone) => {}
            Ok(UnmountOutcome::WasNot | UnmountOutcome::StillBusy) => return Ok(()),
            Err(error) => {
                let what = format!("cannot unmount {}", path.display());
                return Err(RuntimeError::because(what, &error));
            }
        }
    }
}
