//! What the start finds of earlier runs: pods that run are adopted, what ended unseen is taken
//! down, what belongs to nobody is removed. What is decided comes from
//! `rubelet_runtime_plan::recovery`; here it is looked up and done.

mod apply;
mod look;
mod networks;
pub(crate) mod shims;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use rubelet_base::cgroup::CgroupPath;
use rubelet_runtime_plan::recovery::{self, Found};
use tokio::task::JoinSet;

use crate::{
    clock,
    container::Container,
    engine::Engine,
    fault::Outcome,
    kept::{self, KeptContainer, KeptSandbox},
    sandbox::Sandbox,
};

/// Everything of earlier runs that has a record.
pub(crate) struct Known {
    pub(crate) sandboxes: BTreeMap<String, Arc<Sandbox>>,
    pub(crate) containers: BTreeMap<String, Arc<Container>>,
}

/// How long the start waits until everything is in order. What takes longer hangs, mostly on a network
/// plugin or a dead disk; the pods that it doesn't concern need not wait for that.
const PATIENCE: Duration = Duration::from_secs(3);

/// Brings everything in order, as far as that is done soon; the rest goes on behind the caller's back,
/// each sandbox held until it is done. A single thing that can't be brought in order is logged and
/// found again by the next start.
///
/// # Errors
/// The records can't be read: nothing may be removed then.
pub(crate) async fn recover(engine: &Arc<Engine>) -> Outcome<()> {
    let known = Arc::new(load(engine).await?);
    let folders = look::folders(engine).await?;
    let mut shims = shims::connect(engine, &known, folders.keys()).await;
    let seen = look::look(engine, &known, &folders).await?;

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
    let plan = recovery::plan(&Found {
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
        folders,
        mounts: seen.mounts,
        shim_cgroups: seen.shim_cgroups,
        snapshots: engine.images.snapshots(),
    });
    drop((records, containers));
    // Before anybody is added. What has a record is freed with its sandbox, below.
    let on_network = |sandbox: &Arc<Sandbox>| sandbox.record().network_held;
    let mut kept = plan.ready;
    let recorded = known.sandboxes.iter();
    kept.extend(
        recorded
            .filter(|(_, sandbox)| on_network(sandbox))
            .map(|(id, _)| id.clone()),
    );
    tell(engine.network.reconcile(&kept).await);
    let running: Vec<_> = shims.keys().cloned().collect();
    let (adopted, others) = apply::adopt(&known, &mut shims, plan.steps);
    let checked = networks::to_check(&known, &running, &shims);
    tracing::info!(
        pods = adopted,
        steps = others.len(),
        sandboxes = known.sandboxes.len(),
        "takes over what earlier runs left"
    );
    let work = {
        let engine = Arc::clone(engine);
        async move {
            // While their bundles are there, which name them.
            kill_orphans(&engine, seen.orphans).await;
            apply::apply(&engine, &known, shims, others).await;
            tell(engine.network.bury().await);
        }
    };
    // Nothing waits for it: it may take as long as plugins do, and changes nothing.
    tokio::spawn(networks::check(Arc::clone(engine), checked));
    if tokio::time::timeout(PATIENCE, tokio::spawn(work))
        .await
        .is_err()
    {
        tracing::warn!(
            "what earlier runs left is not yet in order; the runtime serves, and goes on with it"
        );
    }
    Ok(())
}

/// Kills containers without a record.
async fn kill_orphans(engine: &Arc<Engine>, orphans: BTreeMap<String, CgroupPath>) {
    let mut killing = JoinSet::new();
    for (container, cgroup) in orphans {
        tracing::info!(container, %cgroup, "kills and removes the cgroup of a container without a record");
        let engine = Arc::clone(engine);
        killing.spawn(async move {
            if let Err(fault) = engine.clear_cgroup(&cgroup).await {
                tracing::warn!(container, %fault, "a leftover stays");
            }
        });
    }
    killing.join_all().await;
}

fn tell(done: Result<Vec<String>, rubelet_cni::NetworkError>) {
    match done {
        Ok(freed) => {
            for freed in freed {
                tracing::info!(freed, "removed a leftover of the network");
            }
        }
        Err(error) => tracing::warn!(%error, "a leftover of the network stays"),
    }
}

/// Reads all records, and makes objects of them that callers will know.
async fn load(engine: &Arc<Engine>) -> Outcome<Known> {
    let layout = engine.layout.clone();
    let (sandboxes, containers) = engine
        .blocking(move || {
            let sandboxes = kept::load_all::<KeptSandbox>(&layout.sandbox_records())?;
            let containers = kept::load_all::<KeptContainer>(&layout.container_records())?;
            Ok((sandboxes, containers))
        })
        .await?;
    let mut known = Known {
        sandboxes: BTreeMap::new(),
        containers: BTreeMap::new(),
    };
    for (id, KeptSandbox(record)) in sandboxes {
        let sandbox = Sandbox::new(record);
        engine.table.add_sandbox(&sandbox);
        take_name(engine, crate::sandbox::remove::name(&sandbox), &id);
        known.sandboxes.insert(id, sandbox);
    }
    for (id, KeptContainer(record)) in containers {
        // One whose sandbox is not known belongs to nobody; the plan removes it. It needs an object
        // for that, but nobody must find it in a sandbox.
        let orphan = || Sandbox::orphanage(&record.sandbox_id, &engine.boot_id);
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

fn take_name(engine: &Engine, name: crate::table::Name, id: &str) {
    match engine.table.reserve(name, id) {
        Ok(reservation) => reservation.keep(),
        // Older records of one name may be left where a removal did not end.
        Err(fault) => tracing::warn!(id, %fault, "two records have one name"),
    }
}
