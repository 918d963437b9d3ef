//! `RemovePodSandbox`.

use std::{fs, io, path::Path, sync::Arc};

use rubelet_cri::v1::{ContainerEventType, PodSandboxMetadata};
use rubelet_runtime_plan::{
    cri_status::sandbox_metadata,
    record::names,
    state::{SandboxCall, SandboxPhase, Verdict},
};

use super::{Sandbox, stop};
use crate::{
    container::remove::remove_alone,
    engine::Engine,
    fault::{Fault, Outcome},
    kept::{self, KeptSandbox},
    layout::SandboxDir,
    table::Name,
};

/// Removes the sandbox with its containers; stops it first if it is ready.
pub(crate) async fn remove(engine: Arc<Engine>, id: String) -> Outcome<()> {
    let Some(sandbox) = engine.sandbox(SandboxCall::Remove, &id)? else {
        return Ok(());
    };
    let _alone = sandbox.calls.write().await;
    if engine.table.sandbox(&sandbox.id).is_none() {
        // Another call has removed it meanwhile.
        return Ok(());
    }
    if sandbox.verdict(SandboxCall::Remove)? == Verdict::StopFirst {
        stop::stop_alone(&engine, &sandbox).await?;
    } else {
        stop::release(&engine, &sandbox).await?;
    }
    sandbox.change(|record| record.phase = SandboxPhase::Removing);
    for container in sandbox.members() {
        let _call = container.calls.lock().await;
        remove_alone(&engine, &container).await?;
    }
    let record = engine.layout.sandbox_record(&sandbox.id);
    let dir = engine.layout.sandbox(&sandbox.id);
    {
        // A record that is being written must not come after its removal.
        let _order = sandbox.saving.lock().await;
        engine.blocking(move || wipe(&record, &dir)).await?;
    }
    engine.table.remove_sandbox(&sandbox.id);
    engine.table.release(&name(&sandbox));
    engine.tell_sandbox(ContainerEventType::ContainerDeletedEvent, &sandbox);
    Ok(())
}

/// The name that a sandbox has taken.
pub(crate) fn name(sandbox: &Sandbox) -> Name {
    let metadata: PodSandboxMetadata = sandbox_metadata(&sandbox.record());
    Name::Sandbox(names::sandbox(&metadata))
}

/// Removes a sandbox's record and run folder, in which nothing must be mounted any more. Blocks.
pub(crate) fn wipe(record: &Path, dir: &SandboxDir) -> Outcome<()> {
    // The folder first: a folder without a record is a leftover, a record without one is a sandbox.
    remove_dir(dir.path())?;
    kept::forget::<KeptSandbox>(record)
}

/// Removes a folder with all that is in it; one that isn't there is removed already. Blocks.
pub(crate) fn remove_dir(dir: &Path) -> Outcome<()> {
    match fs::remove_dir_all(dir) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(Fault::because(
            format!("cannot remove {}", dir.display()),
            &error,
        )),
    }
}
