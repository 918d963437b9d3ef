//! Handles the events of a shim.

use std::sync::Arc;

use rubelet_cri::v1::ContainerEventType;
use rubelet_runtime_plan::state::SandboxPhase;
use rubelet_shim::protocol::Event;

use super::{Sandbox, shim_exit};
use crate::{
    container::record_exit,
    engine::Engine,
    shim_client::{ShimEvent, ShimEventHandler},
};

/// Returns the callback for the events of a sandbox's shim.
pub(crate) fn handler(engine: &Arc<Engine>, sandbox: &Arc<Sandbox>) -> ShimEventHandler {
    // Weak references: the connection must not keep the sandbox alive.
    let (engine, sandbox) = (Arc::downgrade(engine), Arc::downgrade(sandbox));
    Box::new(move |event| {
        let (Some(engine), Some(sandbox)) = (engine.upgrade(), sandbox.upgrade()) else {
            return;
        };
        match event {
            ShimEvent::Event(event) => take(&engine, &sandbox, event),
            ShimEvent::Ended { reason } if sandbox.expects_exit() => {
                tracing::debug!(sandbox = sandbox.id, reason, "The shim exited as requested");
                sandbox.waiters.forget_execs();
            }
            ShimEvent::Ended { reason } => {
                let on_event = handler(&engine, &sandbox);
                let (engine, sandbox) = (Arc::clone(&engine), Arc::clone(&sandbox));
                tokio::spawn(shim_exit::handle(engine, sandbox, reason, on_event));
            }
        }
    })
}

fn take(engine: &Arc<Engine>, sandbox: &Arc<Sandbox>, event: Event) {
    match event {
        Event::Exited { container, exit } => match sandbox.member(&container) {
            Some(container) => record_exit::on_exit(engine, &container, &exit),
            // The container was removed meanwhile.
            None => tracing::debug!(container, "An unknown container exited"),
        },
        Event::ExecExited {
            exec_id, exit_code, ..
        } => {
            sandbox.waiters.exec_exited(&exec_id, exit_code);
        }
        Event::AttachmentOverrun { attach_id, .. } => sandbox.waiters.overrun(&attach_id),
        Event::PauseExited { .. } => {
            tracing::warn!(
                sandbox = sandbox.id,
                "The init of a pod's PID namespace exited; the kernel killed all processes of the namespace"
            );
            let was_ready = sandbox.change(|record| {
                let was_ready = record.phase == SandboxPhase::Ready;
                if was_ready {
                    record.phase = SandboxPhase::NotReady;
                }
                was_ready
            });
            if was_ready {
                engine.publish_sandbox(ContainerEventType::ContainerStoppedEvent, sandbox);
                engine.save_sandbox_later(sandbox);
            }
        }
        Event::Warning { message } => {
            tracing::warn!(sandbox = sandbox.id, message, "Warning from a shim");
        }
        Event::Unknown => {
            tracing::debug!(
                sandbox = sandbox.id,
                "Ignoring an unknown event from a newer shim"
            );
        }
    }
}
