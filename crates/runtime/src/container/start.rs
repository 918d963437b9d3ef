//! `StartContainer`.

use std::sync::Arc;

use rubelet_cri::v1::ContainerEventType;
use rubelet_runtime_plan::{record::ExitRecord, state::ContainerCall};
use rubelet_shim::protocol::Call;

use super::Container;
use crate::{
    clock,
    engine::Engine,
    error::{Result, RuntimeError},
};

/// Starts a created container. If its program can't be executed, the container is exited afterwards
/// with the reason `StartError`.
pub(crate) async fn start(engine: Arc<Engine>, id: String) -> Result<()> {
    let found = engine.container(ContainerCall::Start, &id)?;
    let container = found.ok_or_else(|| RuntimeError::container_not_found(&id))?;
    let _call = container.calls.lock().await;
    container.decision(ContainerCall::Start)?;
    let link = container.sandbox.link()?;
    let call = Call::Start {
        id: container.id.clone(),
    };
    if let Err(error) = link.call(call).await {
        fail(&engine, &container, &error);
        let message = format!("cannot start container {:?}: {error}", container.id);
        return Err(RuntimeError::new(error.kind, message));
    }
    // If it has exited meanwhile, its start was published before its exit.
    if container.set_start(clock::now_ns()) {
        engine.publish(ContainerEventType::ContainerStartedEvent, &container);
        engine.save_container_later(&container);
    }
    Ok(())
}

/// The init exits as well; the shim may have reported that already.
fn fail(engine: &Arc<Engine>, container: &Arc<Container>, error: &RuntimeError) {
    let exit = ExitRecord::start_failed(clock::now_ns(), error.message.clone());
    let first = container.set_exit(exit.clone());
    // In place of an exit that the shim has reported: only this one names the cause.
    container.change(|record| record.exit = Some(exit));
    if first {
        engine.publish(ContainerEventType::ContainerStoppedEvent, container);
    }
    engine.save_container_later(container);
}
