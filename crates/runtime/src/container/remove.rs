//! `RemoveContainer`.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use rubelet_cgroup_plan::CgroupPath;
use rubelet_cri::v1::{ContainerEventType, ContainerMetadata};
use rubelet_runtime_plan::{
    cri_status::sandbox_metadata,
    record::names,
    state::{CallDecision, ContainerCall, ContainerPhase},
};
use rubelet_shim::{log, protocol::Call};

use super::{Container, scope, stop};
use crate::{
    engine::Engine,
    error::{Result, RuntimeError},
    records::{self, StoredContainer},
    table::ReservedName,
};

/// Removes the container; kills it first if it has not exited.
pub(crate) async fn remove(engine: Arc<Engine>, id: String) -> Result<()> {
    let Some(container) = engine.container(ContainerCall::Remove, &id)? else {
        return Ok(());
    };
    // The sandbox's lock before the container's, as in `create` and in the removal of a sandbox.
    let _shared = container.sandbox.calls.read().await;
    let _call = container.calls.lock().await;
    remove_locked(&engine, &container).await
}

/// As [`remove`], for a caller that holds the container's lock.
pub(crate) async fn remove_locked(engine: &Arc<Engine>, container: &Arc<Container>) -> Result<()> {
    if engine.table.container(&container.id).is_none() {
        // A concurrent call removed it.
        return Ok(());
    }
    if container.decision(ContainerCall::Remove)? == CallDecision::StopFirst {
        stop::kill(engine, container).await?;
    }
    container.change(|record| record.phase = ContainerPhase::Removing);
    {
        // Waits for a write in progress, which would recreate the record after its removal.
        let _order = container.saving.lock().await;
        clean(engine, container).await?;
    }
    engine.table.remove_container(&container.id);
    engine.table.release(&name(container));
    container.sandbox.remove_member(&container.id);
    engine.publish(ContainerEventType::ContainerDeletedEvent, container);
    Ok(())
}

/// Kills the processes of a container and removes everything but its log. Idempotent.
pub(super) async fn clean(engine: &Arc<Engine>, container: &Arc<Container>) -> Result<()> {
    // The processes first, as they hold the mounts, the cgroup and the scope: the shim kills those
    // that it knows, and the cgroup all others.
    let id = &container.id;
    if let Some(link) = container.sandbox.live_link() {
        let deleted = link.call(Call::Delete { id: id.clone() }).await;
        // A shim that has exited meanwhile leaves its processes to the cgroup.
        if let Err(error) = deleted
            && !link.has_exited()
        {
            return Err(error);
        }
    }
    let cgroup: CgroupPath = container.cgroup()?;
    engine.clear_cgroup(&cgroup).await?;
    let unit = container.record().scope.clone();
    if !unit.is_empty() {
        scope::stop(unit).await?;
    }
    let removed = engine.images.remove_rootfs(id).await;
    removed.map_err(|error| RuntimeError::because("cannot remove the root file system", &error))?;
    let bundle = engine.layout.sandbox(&container.sandbox.id).bundle(id);
    let record = engine.layout.container_record(id);
    // The kubelet derives restart counts from log files: a container that never ran must leave
    // none.
    let known = container.record();
    let unused = (known.started_at == 0 && !known.log_path.is_empty())
        .then(|| PathBuf::from(&known.log_path));
    engine
        .blocking(move || {
            if let Some(unused) = unused {
                // A failure leaves an empty file.
                let _ = log::remove_if_empty(&unused);
            }
            remove_dir(&bundle)?;
            // Last: as long as it exists, the removal is repeated, by the kubelet or at the start.
            records::remove::<StoredContainer>(&record)
        })
        .await
}

/// Removes a directory and its content. Succeeds if it does not exist. Blocks.
pub(crate) fn remove_dir(dir: &Path) -> Result<()> {
    match fs::remove_dir_all(dir) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(RuntimeError::because(
            format!("cannot remove {}", dir.display()),
            &error,
        )),
    }
}

/// The reserved name of a container.
pub(crate) fn name(container: &Container) -> ReservedName {
    let record = container.record();
    let metadata = ContainerMetadata {
        name: record.name.clone(),
        attempt: record.attempt,
    };
    let pod = sandbox_metadata(&container.sandbox.record());
    ReservedName::Container(names::container(&metadata, &pod))
}
