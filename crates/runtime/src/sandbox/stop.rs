//! `StopPodSandbox`, and giving back what a sandbox holds.

use std::{path::Path, sync::Arc, time::Duration};

use rubelet_base::cgroup::CgroupPath;
use rubelet_cri::v1::ContainerEventType;
use rubelet_host::mount::{Unmounted, unmount};
use rubelet_runtime_plan::state::{SandboxCall, SandboxPhase};
use rubelet_shim::protocol::Call;

use super::{Sandbox, lost, network_request};
use crate::{
    container::{scope, stop::kill},
    engine::Engine,
    fault::{Fault, Outcome},
};

/// How long a supervisor may take to end after it said that it will.
const LEAVING: Duration = Duration::from_secs(5);

/// Kills what runs in the sandbox and gives back what it holds. It stays as one that is not ready.
pub(crate) async fn stop(engine: Arc<Engine>, id: String) -> Outcome<()> {
    let Some(sandbox) = engine.sandbox(SandboxCall::Stop, &id)? else {
        return Ok(());
    };
    let _alone = sandbox.calls.write().await;
    stop_alone(&engine, &sandbox).await
}

/// As [`stop`], for a caller that has the sandbox alone.
pub(crate) async fn stop_alone(engine: &Arc<Engine>, sandbox: &Arc<Sandbox>) -> Outcome<()> {
    sandbox.verdict(SandboxCall::Stop)?;
    for container in sandbox.members() {
        if sandbox.live_link().is_some() {
            kill(engine, &container).await?;
        } else {
            lost::bury(engine, &container).await?;
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
        engine.tell_sandbox(ContainerEventType::ContainerStoppedEvent, sandbox);
    }
    engine.save_sandbox(sandbox).await
}

/// Gives back the network, the supervisor with its namespaces, mounts and cgroup. May be repeated;
/// what is given back already costs nothing.
pub(crate) async fn release(engine: &Arc<Engine>, sandbox: &Arc<Sandbox>) -> Outcome<()> {
    let record = sandbox.record();
    let dir = engine.layout.sandbox(&sandbox.id);
    if record.network_held {
        let request = network_request(&record, dir.netns());
        engine.network.del(&request).await.map_err(|error| {
            Fault::failed(format!("cannot take the sandbox off the network: {error}"))
        })?;
        sandbox.change(|record| {
            record.network_held = false;
            record.ips.clear();
        });
    }
    sandbox.expect_end();
    if let Some(link) = sandbox.take_link() {
        let told = link.call(Call::Shutdown).await;
        let left = told.is_ok() && link.wait_for_end(LEAVING).await;
        if !left {
            link.kill();
        }
        engine.reap(&link).await;
    }
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
pub(crate) fn unmount_all(path: &Path) -> Outcome<()> {
    loop {
        match unmount(path, true) {
            Ok(Unmounted::Gone) => {}
            Ok(Unmounted::WasNot | Unmounted::StillBusy) => return Ok(()),
            Err(error) => {
                let what = format!("cannot unmount {}", path.display());
                return Err(Fault::because(what, &error));
            }
        }
    }
}
