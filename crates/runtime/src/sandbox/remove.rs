//! `RemovePodSandbox`.

use std::{path::Path, sync::Arc};

use rubelet_cri::v1::{ContainerEventType, PodSandboxMetadata};
use rubelet_runtime_plan::{
    cri_status::sandbox_metadata,
    record::names,
    state::{CallDecision, SandboxCall, SandboxPhase},
};

use super::{Sandbox, stop};
use crate::{
    container::remove::{remove_dir, remove_locked},
    engine::Engine,
    error::Result,
    layout::SandboxDir,
    records::{self, StoredSandbox},
    table::ReservedName,
};

/// Removes the sandbox with its containers; stops it first if it is ready.
pub(crate) async fn remove(engine: Arc<Engine>, id: String) -> Result<()> {
    let Some(sandbox) = engine.sandbox(SandboxCall::Remove, &id)? else {
        return Ok(());
    };
    let _exclusive = sandbox.lock_exclusively().await;
    if engine.table.sandbox(&sandbox.id).is_none() {
        // A concurrent call removed it.
        return Ok(());
    }
    if sandbox.decision(SandboxCall::Remove)? == CallDecision::StopFirst {
        stop::stop_locked(&engine, &sandbox).await?;
    } else {
        stop::release(&engine, &sandbox).await?;
    }
    sandbox.change(|record| record.phase = SandboxPhase::Removing);
    for container in sandbox.members() {
        let _call = container.calls.lock().await;
        remove_locked(&engine, &container).await?;
    }
    let record = engine.layout.sandbox_record(&sandbox.id);
    let dir = engine.layout.sandbox(&sandbox.id);
    {
        // Waits for a write in progress, which would recreate the record after its removal.
        let _order = sandbox.saving.lock().await;
        engine.blocking(move || wipe(&record, &dir)).await?;
    }
    engine.table.remove_sandbox(&sandbox.id);
    engine.table.release(&name(&sandbox));
    engine.publish_sandbox(ContainerEventType::ContainerDeletedEvent, &sandbox);
    Ok(())
}

/// The reserved name of a sandbox.
pub(crate) fn name(sandbox: &Sandbox) -> ReservedName {
    let metadata: PodSandboxMetadata = sandbox_metadata(&sandbox.record());
    ReservedName::Sandbox(names::sandbox(&metadata))
}

/// Removes a sandbox's record and run directory. Nothing may be mounted in it. Blocks.
pub(crate) fn wipe(record: &Path, dir: &SandboxDir) -> Result<()> {
    // The directory first: if this is interrupted, the record still names the sandbox, and the
    // removal is repeated.
    remove_dir(dir.path())?;
    records::remove::<StoredSandbox>(record)
}
