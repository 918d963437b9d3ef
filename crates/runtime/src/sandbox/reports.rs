//! What a supervisor reports, taken down at once.

use std::sync::Arc;

use rubelet_cri::v1::ContainerEventType;
use rubelet_runtime_plan::state::SandboxPhase;
use rubelet_shim::protocol::Event;

use super::{Sandbox, lost};
use crate::{
    container::end,
    engine::Engine,
    link::{Report, Reporter},
};

/// Takes down what the supervisor of this sandbox reports.
pub(crate) fn reporter(engine: &Arc<Engine>, sandbox: &Arc<Sandbox>) -> Reporter {
    // The connection must not keep alive what it reports to.
    let (engine, sandbox) = (Arc::downgrade(engine), Arc::downgrade(sandbox));
    Box::new(move |report| {
        let (Some(engine), Some(sandbox)) = (engine.upgrade(), sandbox.upgrade()) else {
            return;
        };
        match report {
            Report::Event(event) => take(&engine, &sandbox, event),
            Report::Ended { reason } if sandbox.expects_end() => {
                tracing::debug!(sandbox = sandbox.id, reason, "a supervisor ended as asked");
                sandbox.forget_execs();
            }
            Report::Ended { reason } => {
                let (engine, sandbox) = (Arc::clone(&engine), Arc::clone(&sandbox));
                tokio::spawn(lost::lost(engine, sandbox, reason));
            }
        }
    })
}

fn take(engine: &Arc<Engine>, sandbox: &Arc<Sandbox>, event: Event) {
    match event {
        Event::Exited { container, exit } => match sandbox.member(&container) {
            Some(container) => end::seen(engine, &container, &exit),
            // It was removed meanwhile.
            None => tracing::debug!(container, "an unknown container ended"),
        },
        Event::ExecExited {
            exec_id, exit_code, ..
        } => {
            if let Some(waiting) = sandbox.forget_exec(&exec_id) {
                // Whoever waited has given up.
                let _ = waiting.send(exit_code);
            }
        }
        Event::PauseExited { .. } => {
            tracing::warn!(
                sandbox = sandbox.id,
                "the first process of a pod's PID namespace ended, and all others with it"
            );
            let was_ready = sandbox.change(|record| {
                let was_ready = record.phase == SandboxPhase::Ready;
                if was_ready {
                    record.phase = SandboxPhase::NotReady;
                }
                was_ready
            });
            if was_ready {
                engine.tell_sandbox(ContainerEventType::ContainerStoppedEvent, sandbox);
                engine.save_sandbox_later(sandbox);
            }
        }
        Event::Warning { message } => {
            tracing::warn!(sandbox = sandbox.id, message, "a supervisor warns");
        }
        Event::Unknown => {
            tracing::debug!(
                sandbox = sandbox.id,
                "a supervisor of a later release reports"
            );
        }
    }
}
