//! The preStop hook of one container that is being stopped. The grace period bounds the wait for it,
//! not the hook itself: that goes on until its container is killed (kubelet: `executePreStopHook`).

use std::{sync::Arc, time::Duration};

use rubelet_api::probe::Hook;
use rubelet_base::ContainerId;
use rubelet_node_state::events::EventType;
use rubelet_pod_plan::step::Kill;
use tokio::{task::JoinSet, time::timeout};
use tracing::warn;

use crate::pod_task::{PodTask, hooks::HookRunner};

/// How long after the end of its container a hook may take to report its own. The runtime, or the
/// kernel for a connection, ends it together with the container; only a request to somewhere else
/// takes longer.
const REPORT_LIMIT: Duration = Duration::from_secs(1);

/// The hook, before it runs, while it runs, and after that. Dropping it breaks the hook off.
#[derive(Default)]
pub(super) struct PreStop {
    pending: Option<PendingHook>,
    /// At most one task, which reports a failure itself: it may come when nobody waits any more.
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

    /// Waits until the hook is over, at once if none runs. Cancel safety: the hook goes on.
    pub(super) async fn ended(&mut self) {
        while let Some(ended) = self.running.join_next().await {
            let panic = ended.err().and_then(|error| error.try_into_panic().ok());
            if let Some(panic) = panic {
                std::panic::resume_unwind(panic);
            }
        }
    }

    /// Ends the hook after its container. One that the end of its container makes fail has a moment to
    /// say so; nothing of a hook outlives it.
    pub(super) async fn container_ended(&mut self) {
        if self.ends_with_container {
            // What is still there afterwards is aborted here.
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
    let (kind, reason) = (EventType::Warning, "FailedPreStopHook");
    runner.event(&container, kind, reason, "PreStopHook failed");
}
