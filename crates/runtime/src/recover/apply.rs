//! Carries out a recovery: the steps of one sandbox in order, different sandboxes in parallel.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use rubelet_runtime_plan::{
    recovery::{PlannedStep, RecoveryStep},
    state::{ContainerPhase, SandboxPhase},
};
use rubelet_shim::protocol::Call;

use tokio::{sync::Semaphore, task::JoinSet};

use super::RecordedState;
use crate::{
    container::remove as container,
    engine::Engine,
    error::{Result, RuntimeError},
    live_shim::LiveShim,
    records::{self, StoredContainer, StoredSandbox},
    sandbox::{network_request, remove as sandbox, stop::unmount_all},
};

/// Timeout for a shim's exit on request.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);

/// Maximum sandboxes recovered at a time. Long steps only wait, for a plugin or for processes
/// to exit.
const CONCURRENCY: usize = 32;

/// Adopts running pods; returns how many, and the other steps.
pub(super) fn adopt(
    known: &RecordedState,
    shims: &mut BTreeMap<String, LiveShim>,
    steps: Vec<PlannedStep>,
) -> (usize, Vec<PlannedStep>) {
    let (mut adopted, mut others) = (0, Vec::new());
    for planned in steps {
        let RecoveryStep::Adopt { sandbox: id } = &planned.step else {
            others.push(planned);
            continue;
        };
        // The plan was made from both.
        let (Some(shim), Some(sandbox)) = (shims.remove(id), known.sandboxes.get(id)) else {
            continue;
        };
        adopted += 1;
        tracing::debug!(sandbox = id, why = planned.why, "Adopted a running pod");
        let state = shim.state.sandbox.unwrap_or_default();
        sandbox.set_namespaces(state.namespaces);
        sandbox.change(|record| record.shim_pid = shim.link.pid());
        sandbox.set_link(shim.link);
    }
    (adopted, others)
}

/// Carries out all other steps. Those of one sandbox run in order with the sandbox's write lock, as
/// in a StopPodSandbox call; after a failed step the next ones still run.
pub(super) async fn apply(
    engine: &Arc<Engine>,
    known: &Arc<RecordedState>,
    mut shims: BTreeMap<String, LiveShim>,
    steps: Vec<PlannedStep>,
) {
    let mut of_each: BTreeMap<String, Vec<PlannedStep>> = BTreeMap::new();
    for planned in steps {
        let id = planned.sandbox.clone();
        of_each.entry(id).or_default().push(planned);
    }
    let turns = Arc::new(Semaphore::new(CONCURRENCY));
    let mut working = JoinSet::new();
    for (id, steps) in of_each {
        let (engine, known, turns) = (Arc::clone(engine), Arc::clone(known), Arc::clone(&turns));
        let shim = shims.remove(&id);
        working.spawn(async move {
            // The semaphore is never closed.
            let _turn = turns.acquire().await;
            let sandbox = known.sandboxes.get(&id);
            let _exclusive = match sandbox {
                Some(sandbox) => Some(sandbox.calls.write().await),
                None => None,
            };
            for PlannedStep { step, why, .. } in steps {
                tracing::info!(%step, why, "Recovering");
                if let Err(error) = take(&engine, &known, shim.as_ref(), &step).await {
                    tracing::warn!(%step, why, %error, "Recovery step failed");
                }
            }
        });
    }
    while let Some(done) = working.join_next().await {
        if let Err(error) = done {
            tracing::warn!(%error, "Recovery step failed");
        }
    }
}

async fn take(
    engine: &Arc<Engine>,
    known: &RecordedState,
    shim: Option<&LiveShim>,
    step: &RecoveryStep,
) -> Result<()> {
    match step {
        // Done in `adopt`.
        RecoveryStep::Adopt { .. } => Ok(()),
        RecoveryStep::EndShim { sandbox } => {
            if let Some(sandbox) = known.sandboxes.get(sandbox) {
                sandbox.expect_exit();
            }
            let Some(shim) = shim else {
                return Ok(());
            };
            let told = shim.link.call(Call::Shutdown).await;
            if told.is_err() || !shim.link.wait_for_exit(SHUTDOWN_TIMEOUT).await {
                shim.link.kill();
            }
            engine.reap(&shim.link).await;
            Ok(())
        }
        RecoveryStep::DeleteInShim { sandbox, container } => {
            let known = known
                .sandboxes
                .get(sandbox)
                .and_then(|sandbox| sandbox.live_link());
            let link = known.or_else(|| shim.map(|shim| Arc::clone(&shim.link)));
            let Some(link) = link else {
                return Ok(());
            };
            let id = container.clone();
            link.call(Call::Delete { id }).await.map(|_| ())
        }
        RecoveryStep::KillCgroup(path) => engine.clear_cgroup(path).await,
        RecoveryStep::MarkRunning { .. }
        | RecoveryStep::MarkExited { .. }
        | RecoveryStep::MarkNotReady { .. } => mark(engine, known, step).await,
        RecoveryStep::FreeNetwork { sandbox } => {
            let Some(sandbox) = known.sandboxes.get(sandbox) else {
                return Ok(());
            };
            let netns = engine.layout.sandbox(&sandbox.id).netns();
            let request = network_request(&sandbox.record(), netns);
            let freed = engine.network.del(&request).await;
            freed.map_err(|error| RuntimeError::failed(error.to_string()))?;
            sandbox.change(|record| {
                record.network_held = false;
                record.ips.clear();
            });
            engine.save_sandbox(sandbox).await
        }
        RecoveryStep::Unmount(path) => {
            let path = path.clone();
            engine.blocking(move || unmount_all(&path)).await
        }
        RecoveryStep::RemoveDirectory(path) => {
            let path = path.clone();
            engine.blocking(move || container::remove_dir(&path)).await
        }
        RecoveryStep::RemoveSnapshot { container } => {
            let removed = engine.images.remove_rootfs(container).await;
            removed.map_err(|error| {
                RuntimeError::because("cannot remove the root file system", &error)
            })
        }
        RecoveryStep::RemoveContainer { .. } | RecoveryStep::RemoveSandbox { .. } => {
            forget(engine, known, step).await
        }
    }
}

async fn mark(engine: &Arc<Engine>, known: &RecordedState, step: &RecoveryStep) -> Result<()> {
    match step {
        RecoveryStep::MarkRunning {
            container,
            pid,
            started_at,
        } => {
            let Some(container) = known.containers.get(container) else {
                return Ok(());
            };
            container.change(|record| {
                // It may have exited since the observation.
                if record.exit.is_none() {
                    record.phase = ContainerPhase::Running;
                    record.pid = *pid;
                    // An exit that was already reported is kept.
                    if record.started_at == 0 {
                        record.started_at = *started_at;
                    }
                }
            });
            engine.save_container(container).await
        }
        RecoveryStep::MarkExited { container, exit } => {
            let Some(container) = known.containers.get(container) else {
                return Ok(());
            };
            container.set_exit(exit.clone());
            engine.save_container(container).await
        }
        RecoveryStep::MarkNotReady { sandbox } => {
            let Some(sandbox) = known.sandboxes.get(sandbox) else {
                return Ok(());
            };
            sandbox.change(|record| record.phase = SandboxPhase::NotReady);
            engine.save_sandbox(sandbox).await
        }
        _ => Ok(()),
    }
}

async fn forget(engine: &Arc<Engine>, known: &RecordedState, step: &RecoveryStep) -> Result<()> {
    match step {
        RecoveryStep::RemoveContainer { container: id } => {
            let record = engine.layout.container_record(id);
            engine
                .blocking(move || records::remove::<StoredContainer>(&record))
                .await?;
            if let Some(found) = known.containers.get(id)
                && engine.table.container(id).is_some()
            {
                found.change(|record| record.phase = ContainerPhase::Removing);
                engine.table.remove_container(id);
                engine.table.release(&container::name(found));
                found.sandbox.remove_member(id);
            }
            Ok(())
        }
        RecoveryStep::RemoveSandbox { sandbox: id } => {
            let record = engine.layout.sandbox_record(id);
            engine
                .blocking(move || records::remove::<StoredSandbox>(&record))
                .await?;
            // A concurrent call may have removed it, and its name may be in use again.
            if let Some(found) = known.sandboxes.get(id)
                && engine.table.sandbox(id).is_some()
            {
                found.change(|record| record.phase = SandboxPhase::Removing);
                engine.table.remove_sandbox(id);
                engine.table.release(&sandbox::name(found));
            }
            Ok(())
        }
        _ => Ok(()),
    }
}
