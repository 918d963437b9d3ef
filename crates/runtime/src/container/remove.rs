//! `RemoveContainer`.

use std::sync::Arc;

use rubelet_cri::v1::{ContainerEventType, ContainerMetadata};
use rubelet_runtime_plan::{
    cri_status::sandbox_metadata,
    record::names,
    state::{CallDecision, ContainerCall, ContainerPhase},
};

use super::{Container, create::clean, stop};
use crate::{engine::Engine, error::Result, table::ReservedName};

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
