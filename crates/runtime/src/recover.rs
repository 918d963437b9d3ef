//! Recovery at the start: adopts running pods, records exits that happened meanwhile, and removes
//! leftovers. `rubelet_runtime_plan::recovery` decides; this module observes the host and carries
//! out the steps.

mod apply;
mod networks;
mod observe;
pub(crate) mod shims;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use rubelet_cgroup_plan::CgroupPath;
use rubelet_runtime_plan::recovery::{self, RecoveryInput};
use tokio::task::JoinSet;

use crate::{
    clock,
    container::Container,
    engine::Engine,
    error::Result,
    records::{self, StoredContainer, StoredSandbox},
    sandbox::Sandbox,
};

/// All sandboxes and containers of earlier runs that have a record.
pub(crate) struct RecordedState {
    pub(crate) sandboxes: BTreeMap<String, Arc<Sandbox>>,
    pub(crate) containers: BTreeMap<String, Arc<Container>>,
}

/// Timeout of the start for the recovery. A step that takes longer hangs, usually on a network
/// plugin or a dead disk; other pods need not wait for it.
const START_TIMEOUT: Duration = Duration::from_secs(3);

/// Recovers the state of earlier runs. Steps that take longer continue in the background, each with
/// its sandbox locked. A step that fails is logged; the next start plans it again.
///
/// # Errors
/// The records can't be read. Nothing is removed then.
pub(crate) async fn recover(engine: &Arc<Engine>) -> Result<()> {
    let known = Arc::new(load(engine).await?);
    let directories = observe::directories(engine).await?;
    let mut shims = shims::connect(engine, &known, directories.keys()).await;
    let seen = observe::observe(engine, &known, &directories).await?;

    let records: BTreeMap<_, _> = known
        .sandboxes
        .iter()
        .map(|(id, sandbox)| (&**id, sandbox.record()))
        .collect();
    let containers: BTreeMap<_, _> = known
        .containers
        .iter()
        .map(|(id, container)| (&**id, container.record()))
        .collect();
    let plan = recovery::plan(&RecoveryInput {
        boot_id: &engine.boot_id,
        now: clock::now_ns(),
        run: engine.layout.run(),
        shim_cgroup: &engine.settings.shim_cgroup,
        sandboxes: records
            .iter()
            .map(|(id, record)| (*id, &**record))
            .collect(),
        containers: containers
            .iter()
            .map(|(id, record)| (*id, &**record))
            .collect(),
        shims: shims
            .iter()
            .map(|(id, shim)| (id.clone(), shim.containers()))
            .collect(),
        exits: seen.exits,
        directories,
        mounts: seen.mounts,
        shim_cgroups: seen.shim_cgroups,
        snapshots: engine.images.snapshots(),
    });
    drop((records, containers));
    // Before any pod is added. Networks of recorded sandboxes are freed with their sandbox, below.
    let on_network = |sandbox: &Arc<Sandbox>| sandbox.record().network_held;
    let mut kept = plan.ready;
    let recorded = known.sandboxes.iter();
    kept.extend(
        recorded
            .filter(|(_, sandbox)| on_network(sandbox))
            .map(|(id, _)| id.clone()),
    );
    log_freed(engine.network.reconcile(&kept).await);
    let running: Vec<_> = shims.keys().cloned().collect();
    let (adopted, others) = apply::adopt(&known, &mut shims, plan.steps);
    let checked = networks::to_check(&known, &running, &shims);
    tracing::info!(
        pods = adopted,
        steps = others.len(),
        sandboxes = known.sandboxes.len(),
        "Recovered the state of the previous run"
    );
    let work = {
        let engine = Arc::clone(engine);
        async move {
            // Before their bundles are removed, which name their cgroups.
            kill_orphans(&engine, seen.orphans).await;
            apply::apply(&engine, &known, shims, others).await;
            log_freed(engine.network.collect_garbage().await);
        }
    };
    // In the background: it may take as long as the plugins do, and changes nothing.
    tokio::spawn(networks::check(Arc::clone(engine), checked));
    if tokio::time::timeout(START_TIMEOUT, tokio::spawn(work))
        .await
        .is_err()
    {
        tracing::warn!(
            "The state of the previous run is not fully recovered; the runtime serves and continues"
        );
    }
    Ok(())
}

/// Kills containers without a record.
async fn kill_orphans(engine: &Arc<Engine>, orphans: BTreeMap<String, CgroupPath>) {
    let mut killing = JoinSet::new();
    for (container, cgroup) in orphans {
        tracing::info!(container, %cgroup, "Killing the processes of a container without a record");
        let engine = Arc::clone(engine);
        killing.spawn(async move {
            if let Err(error) = engine.clear_cgroup(&cgroup).await {
                tracing::warn!(container, %error, "Recovery step failed");
            }
        });
    }
    killing.join_all().await;
}

fn log_freed(done: Result<Vec<String>, rubelet_cni::NetworkError>) {
    match done {
        Ok(freed) => {
            for freed in freed {
                tracing::info!(freed, "Removed a leftover of the pod network");
            }
        }
        Err(error) => tracing::warn!(%error, "Failed to remove a leftover of the pod network"),
    }
}

/// Reads all records and adds their sandboxes and containers to the table.
async fn load(engine: &Arc<Engine>) -> Result<RecordedState> {
    let layout = engine.layout.clone();
    let (sandboxes, containers) = engine
        .blocking(move || {
            let sandboxes = records::load_all::<StoredSandbox>(&layout.sandbox_records())?;
            let containers = records::load_all::<StoredContainer>(&layout.container_records())?;
            Ok((sandboxes, containers))
        })
        .await?;
    let mut known = RecordedState {
        sandboxes: BTreeMap::new(),
        containers: BTreeMap::new(),
    };
    for (id, StoredSandbox(record)) in sandboxes {
        let sandbox = Sandbox::new(record);
        engine.table.add_sandbox(&sandbox);
        take_name(engine, crate::sandbox::remove::name(&sandbox), &id);
        known.sandboxes.insert(id, sandbox);
    }
    for (id, StoredContainer(record)) in containers {
        // A container without a sandbox record is removed by the plan. It needs a sandbox object
        // for that, but no call may find it.
        let orphan = || Sandbox::placeholder(&record.sandbox_id, &engine.boot_id);
        let sandbox = known.sandboxes.get(&record.sandbox_id).cloned();
        let is_orphan = sandbox.is_none();
        let sandbox = sandbox.unwrap_or_else(orphan);
        let container = Container::new(record, &sandbox);
        if !is_orphan {
            sandbox.add_member(&container);
            engine.table.add_container(&container);
            take_name(engine, crate::container::remove::name(&container), &id);
        }
        known.containers.insert(id, container);
    }
    Ok(known)
}

fn take_name(engine: &Engine, name: crate::table::ReservedName, id: &str) {
    match engine.table.reserve(name, id) {
        Ok(reservation) => reservation.keep(),
        // An interrupted removal may leave an older record with the same name.
        Err(error) => tracing::warn!(id, %error, "Two records have the same name"),
    }
}
