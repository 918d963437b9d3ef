//! `RunPodSandbox`.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc};

use rubelet_cgroup_plan::{CgroupPath, ContainerCgroup, runtime_cgroup};
use rubelet_cri::v1::{self, ContainerEventType};
use rubelet_oci::NamespaceKind;
use rubelet_runtime_plan::{
    record::{NamespaceModes, PortRecord, SandboxRecord, names},
    sandbox_spec::{self, PidMode, SandboxPlan},
    state::SandboxPhase,
};
use rubelet_shim::{
    protocol::{Call, SandboxSetup, ShimReply, ShmMount},
    spawn::{SpawnOptions, spawn},
};

use super::{Sandbox, network_request, shim_events, stop};
use crate::{
    blocking::unbounded,
    clock,
    container::scope,
    engine::Engine,
    error::{Result, RuntimeError},
    handler::Handler,
    identifier, pod_files,
    shim_client::ShimClient,
    table::ReservedName,
};

/// Creates a sandbox and returns its identifier. Rolls back when a step fails.
pub(crate) async fn run(engine: Arc<Engine>, request: v1::RunPodSandboxRequest) -> Result<String> {
    let config = request
        .config
        .ok_or_else(|| RuntimeError::invalid("the request has no config"))?;
    let metadata = config
        .metadata
        .clone()
        .ok_or_else(|| RuntimeError::invalid("the sandbox's config has no metadata"))?;
    // Only a check: each container looks up its handler by the record of the sandbox.
    Handler::of(&engine.settings, &request.runtime_handler)?;
    let id = identifier::random()
        .map_err(|error| RuntimeError::because("cannot generate an identifier", &error))?;
    let plan = sandbox_spec::plan(&config, &engine.facts)?;
    let name = ReservedName::Sandbox(names::sandbox(&metadata));
    let reservation = engine.table.reserve(name, &id)?;

    let record = record(
        &engine,
        &config,
        metadata,
        &plan,
        request.runtime_handler,
        id,
    )?;
    let sandbox = Sandbox::new(record);
    if let Err(error) = make(&engine, &sandbox, &plan).await {
        undo(&engine, &sandbox).await;
        return Err(error);
    }
    // Visible only from here on: no call finds a partially created sandbox.
    reservation.keep();
    engine.table.add_sandbox(&sandbox);
    engine.publish_sandbox(ContainerEventType::ContainerCreatedEvent, &sandbox);
    engine.publish_sandbox(ContainerEventType::ContainerStartedEvent, &sandbox);
    Ok(sandbox.id.clone())
}

fn record(
    engine: &Engine,
    config: &v1::PodSandboxConfig,
    metadata: v1::PodSandboxMetadata,
    plan: &SandboxPlan,
    runtime_handler: String,
    id: String,
) -> Result<SandboxRecord> {
    let shim_cgroup = shim_cgroup(engine, &id)?.path;
    Ok(SandboxRecord {
        boot_id: engine.boot_id.clone(),
        name: metadata.name,
        namespace: metadata.namespace,
        uid: metadata.uid,
        attempt: metadata.attempt,
        phase: SandboxPhase::Creating,
        created_at: clock::now_ns(),
        labels: config.labels.clone().into_iter().collect(),
        annotations: config.annotations.clone().into_iter().collect(),
        runtime_handler,
        log_directory: config.log_directory.clone(),
        cgroup_parent: plan.cgroup_parent.clone(),
        shim_cgroup: shim_cgroup.as_str().to_owned(),
        shim_pid: 0,
        namespaces: NamespaceModes::of(config)?,
        ips: Vec::new(),
        ports: plan.port_mappings.iter().map(PortRecord::of).collect(),
        // Before the plugin is called: a rollback also frees the resources of a failed ADD.
        network_held: plan.network,
        id,
    })
}

fn shim_cgroup(engine: &Engine, id: &str) -> Result<ContainerCgroup> {
    let settings = &engine.settings;
    runtime_cgroup::shim(&settings.shim_cgroup, id, settings.cgroup_driver)
        .map_err(|error| RuntimeError::failed(error.to_string()))
}

async fn make(engine: &Arc<Engine>, sandbox: &Arc<Sandbox>, plan: &SandboxPlan) -> Result<()> {
    let dir = engine.layout.sandbox(&sandbox.id);
    start_shim(engine, sandbox, plan).await?;
    let setup = setup(engine, sandbox, plan);
    match sandbox
        .link()?
        .call(Call::MakeSandbox(Box::new(setup)))
        .await?
    {
        ShimReply::Sandbox(state) => sandbox.set_namespaces(state.namespaces),
        other => {
            return Err(RuntimeError::failed(format!(
                "unexpected reply from the shim: {other:?}"
            )));
        }
    }
    if plan.network {
        let request = network_request(&sandbox.record(), dir.netns());
        let result = engine.network.add(&request).await;
        let result = result.map_err(|error| {
            RuntimeError::failed(format!("cannot set up the network of the sandbox: {error}"))
        })?;
        for warning in result.warnings {
            tracing::warn!(
                sandbox = sandbox.id,
                warning,
                "Warning from the pod network"
            );
        }
        let ips = result.ips.iter().map(ToString::to_string).collect();
        sandbox.change(|record| record.ips = ips);
    }
    // From here on an exit of the shim makes the sandbox not ready; before, it makes this call
    // fail.
    let ready = sandbox.change(|record| {
        let ready = record.phase == SandboxPhase::Creating;
        if ready {
            record.phase = SandboxPhase::Ready;
        }
        ready
    });
    if !ready {
        return Err(crate::shim_client::shim_exited());
    }
    engine.save_sandbox(sandbox).await
}

async fn start_shim(
    engine: &Arc<Engine>,
    sandbox: &Arc<Sandbox>,
    plan: &SandboxPlan,
) -> Result<()> {
    let dir = engine.layout.sandbox(&sandbox.id);
    let (plan, executable) = (plan.clone(), engine.settings.executable.clone());
    let cgroup = shim_cgroup(engine, &sandbox.id)?;
    let scope = cgroup.scope.clone();
    let started = engine
        .blocking(move || {
            pod_files::write(&dir, &plan)?;
            spawn(SpawnOptions {
                executable: &executable,
                dir: dir.path(),
                // With the systemd driver, systemd moves the shim into its scope.
                cgroup: cgroup.scope.is_none().then_some(&cgroup.path),
            })
            .map_err(|error| RuntimeError::because("cannot start the shim of the pod", &error))
        })
        .await?;
    let pid = started.pid;
    let on_event = shim_events::handler(engine, sandbox);
    let link = ShimClient::open(started.socket, started.pid, started.pidfd, on_event);
    let link = link.map_err(|error| {
        RuntimeError::because("cannot communicate with the shim of the pod", &error)
    })?;
    sandbox.change(|record| record.shim_pid = link.pid());
    sandbox.set_link(link);
    // After the spawn: systemd refuses a scope without a process.
    if let Some(scope) = scope {
        let layout = engine.cgroups.layout();
        unbounded(move || scope::start_for(&scope, pid, layout)).await?;
    }
    Ok(())
}

fn setup(engine: &Engine, sandbox: &Sandbox, plan: &SandboxPlan) -> SandboxSetup {
    let dir = engine.layout.sandbox(&sandbox.id);
    let wanted = [
        (NamespaceKind::Network, plan.network),
        (NamespaceKind::Ipc, plan.ipc),
        (NamespaceKind::Uts, plan.uts),
        (NamespaceKind::Pid, plan.pid == PidMode::Pod),
    ];
    let sysctls: BTreeMap<String, String> = plan.sysctls.clone();
    SandboxSetup {
        id: sandbox.id.clone(),
        namespaces: wanted
            .into_iter()
            .filter_map(|(kind, wanted)| wanted.then_some(kind))
            .collect(),
        user: plan.user.clone(),
        hostname: plan.hostname.clone().unwrap_or_default(),
        sysctls,
        bind_net: plan.network.then(|| dir.netns()),
        shm: plan.shm_bytes.map(|size_bytes| ShmMount {
            path: dir.shm(),
            size_bytes,
        }),
        // The pause process is accounted to the shim, not to the pod's limits.
        cgroup: None::<CgroupPath>,
    }
}

/// Rolls back. Anything that can't be undone now is removed at the next start.
async fn undo(engine: &Arc<Engine>, sandbox: &Arc<Sandbox>) {
    // From here on no write of the record begins, which would outlive the rollback.
    sandbox.change(|record| record.phase = SandboxPhase::Removing);
    if let Err(error) = stop::release(engine, sandbox).await {
        tracing::warn!(sandbox = sandbox.id, %error, "Failed to clean up after a sandbox could not be created");
    }
    let record: PathBuf = engine.layout.sandbox_record(&sandbox.id);
    let dir = engine.layout.sandbox(&sandbox.id);
    let cleaned = {
        // Waits for a write in progress, which would recreate the record after its removal.
        let _order = sandbox.saving.lock().await;
        engine
            .blocking(move || super::remove::wipe(&record, &dir))
            .await
    };
    if let Err(error) = cleaned {
        tracing::warn!(sandbox = sandbox.id, %error, "Failed to clean up after a sandbox could not be created");
    }
}
