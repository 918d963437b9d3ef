//! What the start finds of earlier runs: pods that run are adopted, what ended unseen is taken
//! down, what belongs to nobody is removed. What is decided comes from
//! `rubelet_runtime_plan::recovery`; here it is looked up and done.

mod apply;
mod look;
pub(crate) mod shims;

use std::{collections::BTreeMap, sync::Arc};

use rubelet_runtime_plan::recovery::{self, Found};

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

/// Brings everything in order. A single thing that can't be is logged and found again by the next
/// start.
///
/// # Errors
/// The records can't be read: nothing may be removed then.
pub(crate) async fn recover(engine: &Arc<Engine>) -> Outcome<()> {
    let known = load(engine).await?;
    let folders = look::folders(engine).await?;
    let shims = shims::connect(engine, &known, folders.keys()).await;
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
    for (container, cgroup) in seen.orphans {
        tracing::info!(container, %cgroup, "kills and removes the cgroup of a container without a record");
        if let Err(fault) = engine.clear_cgroup(&cgroup).await {
            tracing::warn!(container, %fault, "a leftover stays");
        }
    }
    let (adopted, others) = apply::apply(engine, &known, shims, plan.steps).await;
    match engine.network.reconcile(&plan.ready).await {
        Ok(freed) => {
            for freed in freed {
                tracing::info!(freed, "removed a leftover of the network");
            }
        }
        Err(error) => tracing::warn!(%error, "a leftover of the network stays"),
    }
    tracing::info!(
        pods = adopted,
        steps = others,
        sandboxes = engine.table.sandboxes().len(),
        "took over what earlier runs left"
    );
    Ok(())
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
