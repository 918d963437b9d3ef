//! The end of a container.

use std::sync::Arc;

use rubelet_cri::v1::ContainerEventType;
use rubelet_runtime_plan::record::ExitRecord;

use super::Container;
use crate::{clock, engine::Engine};

/// The end of a container as its supervisor saw it. It is told when it is on disk: whoever was told
/// of an exit finds the same one after a power cut.
pub(crate) fn seen(
    engine: &Arc<Engine>,
    container: &Arc<Container>,
    exit: &rubelet_shim::ExitRecord,
) {
    let started_at = time(exit.started_at_ns);
    // A program may end before the answer to its start was heard.
    let begun = container.change(|record| {
        let begun = record.started_at == 0 && started_at != 0;
        if begun {
            record.started_at = started_at;
        }
        begun
    });
    if begun {
        engine.tell(ContainerEventType::ContainerStartedEvent, container);
    }
    let exit = from_shim(exit);
    let (engine, container) = (Arc::clone(engine), Arc::clone(container));
    tokio::spawn(async move {
        if let Err(fault) = engine.save_exit(&container, &exit).await {
            // A full disk must not hide an exit.
            tracing::warn!(container = container.id, %fault, "an exit was not written to the container's record");
        }
        if container.set_exit(exit) {
            engine.tell(ContainerEventType::ContainerStoppedEvent, &container);
        }
    });
}

/// Takes down how a container ended that its supervisor can't tell of, once.
pub(crate) fn take_down(engine: &Arc<Engine>, container: &Arc<Container>, exit: ExitRecord) {
    if container.set_exit(exit) {
        engine.tell(ContainerEventType::ContainerStoppedEvent, container);
        engine.save_container_later(container);
    }
}

/// An end that the supervisor has on record.
pub(crate) fn from_shim(exit: &rubelet_shim::ExitRecord) -> ExitRecord {
    let at = match time(exit.at_ns) {
        0 => clock::now_ns(),
        at => at,
    };
    ExitRecord::seen(
        exit.exit_code,
        exit.signal.unwrap_or(0),
        at,
        exit.oom_killed,
    )
}

/// The supervisor counts times without a sign.
pub(crate) fn time(ns: u64) -> i64 {
    i64::try_from(ns).unwrap_or(i64::MAX)
}
