//! The preStop hook of one container that is being stopped. The grace period bounds the wait for
//! it, not the hook itself: that goes on until its container is killed (kubelet:
//! `executePreStopHook`).

use std::{sync::Arc, time::Duration};

use rubelet_api::probe::Hook;
use rubelet_base::{ContainerId, event_reason};
use rubelet_node_state::events::EventType;
use rubelet_pod_plan::step::Kill;
use tokio::{task::JoinSet, time::timeout};
use tracing::warn;

use crate::pod_task::{PodTask, hooks::HookRunner};

/// Longest wait for the result of a hook after the exit of its container. A command ends with the
/// container, and so does a connection to it; only a request to another host takes longer.
const REPORT_LIMIT: Duration = Duration::from_secs(1);

/// The preStop hook of one stop: pending, running or done. Dropping it aborts the hook.
#[derive(Default)]
pub(super) struct PreStop {
    pending: Option<PendingHook>,
    /// At most one task, which reports a failure itself, as it may fail after the wait for it.
    running: JoinSet<()>,
    ends_with_container: bool,
}

struct PendingHook {
    container: Box<str>,
    id: ContainerId,
    hook: Arc<Hook>,
}

impl PreStop {
    /// The hook of a container, if it has one.
    pub(super) fn new(kill: &Kill) -> Self {
        let pending = kill.pre_stop.as_ref().map(|hook| PendingHook {
            container: kill.name.clone(),
            id: kill.id.clone(),
            hook: Arc::clone(hook),
        });
        Self {
            pending,
            ..Self::default()
        }
    }

    /// Starts the hook, once.
    pub(super) fn start(&mut self, task: &PodTask) {
        let Some(pending) = self.pending.take() else {
            return;
        };
        self.ends_with_container = !matches!(*pending.hook, Hook::Sleep(_));
        self.running.spawn(run(task.hook_runner(), pending));
    }

    /// Waits until the hook has ended; returns at once if none runs. Cancel safety: the hook
    /// continues.
    pub(super) async fn ended(&mut self) {
        while let Some(ended) = self.running.join_next().await {
            let panic = ended.err().and_then(|error| error.try_into_panic().ok());
            if let Some(panic) = panic {
                std::panic::resume_unwind(panic);
            }
        }
    }

    /// Ends the hook after its container has exited. A hook that fails due to the exit has a moment
    /// to report it; then it is aborted.
    pub(super) async fn container_ended(&mut self) {
        if self.ends_with_container {
            // A hook that is still running is aborted below.
            let _ = timeout(REPORT_LIMIT, self.ended()).await;
        }
        self.running.abort_all();
    }
}

async fn run(runner: HookRunner, pending: PendingHook) {
    let PendingHook {
        container,
        id,
        hook,
    } = pending;
    let Err(error) = runner.run(&container, &id, &hook).await else {
        return;
    };
    let error = error.to_string();
    warn!(pod = %runner.pod().name, container = %container, error, "PreStop hook failed");
    // The hook's output may hold secrets; events are read by more people than the log.
    let (kind, reason) = (EventType::Warning, event_reason::FAILED_PRE_STOP_HOOK);
    runner.event(&container, kind, reason, "PreStopHook failed");
}
