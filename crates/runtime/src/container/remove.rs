//! `RemoveContainer`.

use std::sync::Arc;

use rubelet_cri::v1::{ContainerEventType, ContainerMetadata};
use rubelet_runtime_plan::{
    cri_status::sandbox_metadata,
    record::names,
    state::{ContainerCall, ContainerPhase, Verdict},
};

use super::{Container, create::clean, stop};
use crate::{engine::Engine, fault::Outcome, table::Name};

/// Removes the container; kills it first if it has not ended.
pub(crate) async fn remove(engine: Arc<Engine>, id: String) -> Outcome<()> {
    let Some(container) = engine.container(ContainerCall::Remove, &id)? else {
        return Ok(());
    };
    let _shared = container.sandbox.calls.read().await;
    let _call = container.calls.lock().await;
    remove_alone(&engine, &container).await
}

/// As [`remove`], for a caller that has the container alone.
pub(crate) async fn remove_alone(engine: &Arc<Engine>, container: &Arc<Container>) -> Outcome<()> {
    if engine.table.container(&container.id).is_none() {
        // Another call has removed it meanwhile.
        return Ok(());
    }
    if container.verdict(ContainerCall::Remove)? == Verdict::StopFirst {
        stop::kill(engine, container).await?;
    }
    container.change(|record| record.phase = ContainerPhase::Removing);
    {
        // A record that is being written must not come after its removal.
        let _order = container.saving.lock().await;
        clean(engine, container).await?;
    }
    engine.table.remove_container(&container.id);
    engine.table.release(&name(container));
    container.sandbox.remove_member(&container.id);
    engine.tell(ContainerEventType::ContainerDeletedEvent, container);
    Ok(())
}

/// The name that a container has taken.
pub(crate) fn name(container: &Container) -> Name {
    let record = container.record();
    let metadata = ContainerMetadata {
        name: record.name.clone(),
        attempt: record.attempt,
    };
    let pod = sandbox_metadata(&container.sandbox.record());
    Name::Container(names::container(&metadata, &pod))
}
