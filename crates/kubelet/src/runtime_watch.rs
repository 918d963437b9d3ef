//! Queries the status and the features of the runtime.

use std::{sync::Arc, time::Duration};

use rubelet_base::{Backoff, ErrorChain};
use rubelet_cgroup_plan::CgroupDriver;
use rubelet_cri::{RuntimeService, v1};
use rubelet_node_state::runtime_state::{RuntimeHandler, RuntimeState};
use rubelet_pleg::PlegHandle;
use tokio::{
    sync::watch,
    time::{Instant, sleep},
};
use tracing::{info, warn};

/// Time between two status calls while the runtime is ready (kubelet: 5 s).
const PERIOD: Duration = Duration::from_secs(5);
/// First and longest wait while it is not ready.
const RETRY_INITIAL: Duration = Duration::from_millis(100);
const RETRY_MAX: Duration = Duration::from_secs(5);

/// Queries the runtime's status, every 5 s while it is ready and every 100 ms to 5 s while it is
/// not. Tells PLEG about each response.
pub async fn watch_runtime(
    runtime: Arc<dyn RuntimeService>,
    endpoint: Arc<str>,
    state: watch::Sender<RuntimeState>,
    pleg: PlegHandle,
) {
    let mut backoff = Backoff::new(RETRY_INITIAL, RETRY_MAX);
    let mut last_log = None;
    loop {
        pleg.look_for_suspend();
        let old = state.borrow().clone();
        let next = look(&*runtime, &old, &pleg).await;
        let wait = match &next.problem {
            None => {
                backoff.reset();
                if !old.is_ready() {
                    info!(runtime = %next.version, endpoint = %endpoint, "Container runtime is ready");
                }
                last_log = None;
                PERIOD
            }
            Some(problem) => {
                let wait = backoff.advance();
                // Logged at once, and then at most as often as the longest wait.
                let due = last_log.is_none_or(|at: Instant| at.elapsed() >= RETRY_MAX);
                if due || old.problem != next.problem {
                    warn!(endpoint = %endpoint, retry = ?wait, "skipping pod synchronization: {problem}");
                    last_log = Some(Instant::now());
                }
                wait
            }
        };
        state.send_if_modified(|old| {
            let changed = *old != next;
            if changed {
                *old = next;
            }
            changed
        });
        sleep(wait).await;
    }
}

async fn look(runtime: &dyn RuntimeService, old: &RuntimeState, pleg: &PlegHandle) -> RuntimeState {
    let mut next = old.clone();
    match runtime.status(v1::StatusRequest { verbose: false }).await {
        Ok(answer) => {
            pleg.answered();
            next.answered = true;
            next.silent = false;
            next.handlers = handlers(answer.runtime_handlers);
            next.supplemental_groups_policy = answer
                .features
                .map(|features| features.supplemental_groups_policy);
            let conditions = answer
                .status
                .map(|status| status.conditions)
                .unwrap_or_default();
            let problem = |kind: &str, subject: &str| -> Option<Arc<str>> {
                let condition = conditions
                    .iter()
                    .find(|condition| condition.r#type == kind)?;
                (!condition.status).then(|| {
                    format!(
                        "{subject} not ready: {kind}=false reason:{} message:{}",
                        condition.reason, condition.message
                    )
                    .into()
                })
            };
            next.problem = problem("RuntimeReady", "container runtime");
            next.network_problem = problem("NetworkReady", "container runtime network");
            // Another runtime, or another version, may have taken over the socket meanwhile.
            if old.problem.is_some() || !old.answered {
                identify(runtime, &mut next).await;
            }
        }
        Err(error) => {
            next.silent = true;
            next.problem =
                Some(format!("container runtime is down: {}", ErrorChain(&error)).into());
        }
    }
    next
}

/// Sorts the handlers by name: runtimes list them in any order.
fn handlers(listed: Vec<v1::RuntimeHandler>) -> Arc<[RuntimeHandler]> {
    let mut handlers: Vec<RuntimeHandler> = listed
        .into_iter()
        .map(|handler| {
            let features = handler.features.unwrap_or_default();
            RuntimeHandler {
                name: handler.name.into(),
                recursive_read_only_mounts: features.recursive_read_only_mounts,
                user_namespaces: features.user_namespaces,
            }
        })
        .collect();
    handlers.sort_unstable();
    handlers.into()
}

/// Queries properties that do not change while the runtime runs.
async fn identify(runtime: &dyn RuntimeService, next: &mut RuntimeState) {
    if let Ok(answer) = runtime
        .version(v1::VersionRequest {
            version: "0.1.0".to_owned(),
        })
        .await
    {
        next.name = answer.runtime_name.as_str().into();
        next.version = format!("{} {}", answer.runtime_name, answer.runtime_version).into();
    }
    // Runtimes before CRI 0.28 do not know this call; the configuration decides then.
    if let Ok(answer) = runtime.runtime_config(v1::RuntimeConfigRequest {}).await {
        next.cgroup_driver = answer.linux.map(|linux| match linux.cgroup_driver() {
            v1::CgroupDriver::Systemd => CgroupDriver::Systemd,
            v1::CgroupDriver::Cgroupfs => CgroupDriver::Cgroupfs,
        });
    }
}
