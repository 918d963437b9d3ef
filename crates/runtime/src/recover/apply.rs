//! Carries a recovery out, step by step.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use rubelet_runtime_plan::{
    recovery::{Planned, Step},
    state::{ContainerPhase, SandboxPhase},
};
use rubelet_shim::protocol::Call;

use super::{Known, shims::LiveShim};
use crate::{
    container::remove as container,
    engine::Engine,
    fault::{Fault, Outcome},
    kept::{self, KeptContainer, KeptSandbox},
    sandbox::{network_request, remove as sandbox, stop::unmount_all},
};

/// How long a supervisor may take to end that is not wanted any more.
const LEAVING: Duration = Duration::from_secs(5);

/// Does all steps; how many pods were adopted, and how many other steps there were. One that fails
/// does not hold up the others.
pub(super) async fn apply(
    engine: &Arc<Engine>,
    known: &Known,
    mut shims: BTreeMap<String, LiveShim>,
    steps: Vec<Planned>,
) -> (usize, usize) {
    let (mut adopted, mut others) = (0, 0);
    for Planned { step, why } in steps {
        if let Step::Adopt { sandbox } = &step {
            adopted += 1;
            tracing::debug!(sandbox, why, "a pod goes on");
        } else {
            others += 1;
            tracing::info!(?step, why, "brings in order what was left");
        }
        if let Err(fault) = take(engine, known, &mut shims, &step).await {
            tracing::warn!(?step, why, %fault, "a leftover stays");
        }
    }
    (adopted, others)
}

async fn take(
    engine: &Arc<Engine>,
    known: &Known,
    shims: &mut BTreeMap<String, LiveShim>,
    step: &Step,
) -> Outcome<()> {
    match step {
        Step::Adopt { sandbox } => {
            let (Some(shim), Some(sandbox)) = (shims.remove(sandbox), known.sandboxes.get(sandbox))
            else {
                return Err(Fault::failed("its supervisor is gone"));
            };
            let state = shim.state.sandbox.unwrap_or_default();
            sandbox.set_namespaces(state.namespaces);
            sandbox.change(|record| record.shim_pid = shim.link.pid());
            sandbox.set_link(shim.link);
            Ok(())
        }
        Step::EndShim { sandbox } => {
            if let Some(sandbox) = known.sandboxes.get(sandbox) {
                sandbox.expect_end();
            }
            let Some(shim) = shims.remove(sandbox) else {
                return Ok(());
            };
            let told = shim.link.call(Call::Shutdown).await;
            if told.is_err() || !shim.link.wait_for_end(LEAVING).await {
                shim.link.kill();
            }
            engine.reap(&shim.link).await;
            Ok(())
        }
        Step::DeleteInShim { sandbox, container } => {
            let known = known
                .sandboxes
                .get(sandbox)
                .and_then(|sandbox| sandbox.live_link());
            let link = known.or_else(|| shims.get(sandbox).map(|shim| Arc::clone(&shim.link)));
            let Some(link) = link else {
                return Ok(());
            };
            let id = container.clone();
            link.call(Call::Delete { id }).await.map(|_| ())
        }
        Step::KillCgroup(path) => engine.clear_cgroup(path).await,
        Step::MarkRunning { .. } | Step::MarkExited { .. } | Step::MarkNotReady { .. } => {
            mark(engine, known, step).await
        }
        Step::FreeNetwork { sandbox } => {
            let Some(sandbox) = known.sandboxes.get(sandbox) else {
                return Ok(());
            };
            let netns = engine.layout.sandbox(&sandbox.id).netns();
            let request = network_request(&sandbox.record(), netns);
            let freed = engine.network.del(&request).await;
            freed.map_err(|error| Fault::failed(error.to_string()))?;
            sandbox.change(|record| {
                record.network_held = false;
                record.ips.clear();
            });
            engine.save_sandbox(sandbox).await
        }
        Step::Unmount(path) => {
            let path = path.clone();
            engine.blocking(move || unmount_all(&path)).await
        }
        Step::RemoveFolder(path) => {
            let path = path.clone();
            engine.blocking(move || sandbox::remove_dir(&path)).await
        }
        Step::RemoveSnapshot { container } => {
            let removed = engine.images.remove_rootfs(container).await;
            removed.map_err(|error| Fault::because("cannot remove it", &error))
        }
        Step::RemoveContainer { .. } | Step::RemoveSandbox { .. } => {
            forget(engine, known, step).await
        }
    }
}

async fn mark(engine: &Arc<Engine>, known: &Known, step: &Step) -> Outcome<()> {
    match step {
        Step::MarkRunning {
            container,
            pid,
            started_at,
        } => {
            let Some(container) = known.containers.get(container) else {
                return Ok(());
            };
            container.change(|record| {
                // It may have ended since it was looked at.
                if record.exit.is_none() {
                    record.phase = ContainerPhase::Running;
                    record.pid = *pid;
                    // The one that was told already stays.
                    if record.started_at == 0 {
                        record.started_at = *started_at;
                    }
                }
            });
            engine.save_container(container).await
        }
        Step::MarkExited { container, exit } => {
            let Some(container) = known.containers.get(container) else {
                return Ok(());
            };
            container.set_exit(exit.clone());
            engine.save_container(container).await
        }
        Step::MarkNotReady { sandbox } => {
            let Some(sandbox) = known.sandboxes.get(sandbox) else {
                return Ok(());
            };
            sandbox.change(|record| record.phase = SandboxPhase::NotReady);
            engine.save_sandbox(sandbox).await
        }
        _ => Ok(()),
    }
}

async fn forget(engine: &Arc<Engine>, known: &Known, step: &Step) -> Outcome<()> {
    match step {
        Step::RemoveContainer { container: id } => {
            let record = engine.layout.container_record(id);
            engine
                .blocking(move || kept::forget::<KeptContainer>(&record))
                .await?;
            if let Some(found) = known.containers.get(id) {
                found.change(|record| record.phase = ContainerPhase::Removing);
                engine.table.remove_container(id);
                engine.table.release(&container::name(found));
                found.sandbox.remove_member(id);
            }
            Ok(())
        }
        Step::RemoveSandbox { sandbox: id } => {
            let record = engine.layout.sandbox_record(id);
            engine
                .blocking(move || kept::forget::<KeptSandbox>(&record))
                .await?;
            if let Some(found) = known.sandboxes.get(id) {
                found.change(|record| record.phase = SandboxPhase::Removing);
                engine.table.remove_sandbox(id);
                engine.table.release(&sandbox::name(found));
            }
            Ok(())
        }
        _ => Ok(()),
    }
}
