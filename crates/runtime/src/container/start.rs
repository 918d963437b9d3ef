//! `StartContainer`.

use std::sync::Arc;

use rubelet_cri::v1::ContainerEventType;
use rubelet_runtime_plan::{
    record::ExitRecord,
    state::{ContainerCall, ContainerPhase},
};
use rubelet_shim::protocol::Call;

use super::Container;
use crate::{
    clock,
    engine::Engine,
    fault::{Fault, Outcome},
};

/// Starts a created container. One whose program can't be executed is exited afterwards, with the
/// reason `StartError`.
pub(crate) async fn start(engine: Arc<Engine>, id: String) -> Outcome<()> {
    let found = engine.container(ContainerCall::Start, &id)?;
    let container =
        found.ok_or_else(|| Fault::not_found(format!("there is no container {id:?}")))?;
    let _call = container.calls.lock().await;
    container.verdict(ContainerCall::Start)?;
    let link = container.sandbox.link()?;
    let call = Call::Start {
        id: container.id.clone(),
    };
    if let Err(fault) = link.call(call).await {
        fail(&engine, &container, &fault);
        let message = format!("cannot start container {:?}: {fault}", container.id);
        return Err(Fault::new(fault.kind, message));
    }
    let running = container.change(|record| {
        if record.started_at == 0 {
            record.started_at = clock::now_ns();
        }
        let running = record.phase == ContainerPhase::Created;
        if running {
            record.phase = ContainerPhase::Running;
        }
        running
    });
    // One that has ended meanwhile was told of as it ended.
    if running {
        engine.tell(ContainerEventType::ContainerStartedEvent, &container);
        engine.save_container_later(&container);
    }
    Ok(())
}

/// Its init ends, too, and may have been seen to before this.
fn fail(engine: &Arc<Engine>, container: &Arc<Container>, fault: &Fault) {
    let exit = ExitRecord::start_failed(clock::now_ns(), fault.message.clone());
    let first = container.set_exit(exit.clone());
    container.change(|record| record.exit = Some(exit));
    if first {
        engine.tell(ContainerEventType::ContainerStoppedEvent, container);
    }
    engine.save_container_later(container);
}
