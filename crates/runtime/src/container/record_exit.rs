//! Records the exit of a container, and publishes it.

use std::sync::Arc;

use rubelet_cri::v1::ContainerEventType;
use rubelet_runtime_plan::record::ExitRecord;

use super::{
    Container,
    exit::{from_shim, time},
};
use crate::engine::Engine;

/// Records an exit that the shim reports. The event is published after the record is on disk: a
/// client that saw an exit finds the same one after a power failure.
pub(crate) fn on_exit(
    engine: &Arc<Engine>,
    container: &Arc<Container>,
    exit: &rubelet_shim::ExitRecord,
) {
    let started_at = time(exit.started_at_ns);
    // A program may exit before the reply to its start arrives.
    if started_at != 0 && container.set_start(started_at) {
        engine.publish(ContainerEventType::ContainerStartedEvent, container);
    }
    let exit = from_shim(exit);
    let (engine, container) = (Arc::clone(engine), Arc::clone(container));
    tokio::spawn(async move {
        if let Err(error) = engine.save_exit(&container, &exit).await {
            // Published nevertheless: a full disk must not hide an exit.
            tracing::warn!(container = container.id, %error, "Failed to write an exit to the record of its container");
        }
        if container.set_exit(exit) {
            engine.publish(ContainerEventType::ContainerStoppedEvent, &container);
        }
    });
}

/// Records an exit that the shim can't report, unless there is one already.
pub(crate) fn record_exit(engine: &Arc<Engine>, container: &Arc<Container>, exit: ExitRecord) {
    if container.set_exit(exit) {
        engine.publish(ContainerEventType::ContainerStoppedEvent, container);
        engine.save_container_later(container);
    }
}
