//! `UpdateContainerResources` and `UpdatePodSandboxResources`.

use std::sync::Arc;

use rubelet_cri::v1;
use rubelet_oci::LinuxResources;
use rubelet_runtime_plan::{
    resources,
    state::{ContainerCall, SandboxCall},
};

use super::scope;
use crate::{
    engine::Engine,
    error::{Result, RuntimeError},
};

/// Updates limits of a container. Those that are zero in the request stay as they are. If the
/// kernel refuses one, the previous limits are restored.
pub(crate) async fn update(
    engine: Arc<Engine>,
    request: v1::UpdateContainerResourcesRequest,
) -> Result<()> {
    let id = &request.container_id;
    let found = engine.container(ContainerCall::Update, id)?;
    let container = found.ok_or_else(|| RuntimeError::container_not_found(id))?;
    let _call = container.calls.lock().await;
    container.decision(ContainerCall::Update)?;
    let wanted = request
        .linux
        .ok_or_else(|| RuntimeError::invalid("the request has no linux resources"))?;
    let before = container.record().resources.clone();
    let after = resources::merge(&before, &wanted, &engine.facts)?;
    let cgroup = container.cgroup()?;
    let unit = container.record().scope.clone();
    if !unit.is_empty() {
        scope::set_limits(unit.clone(), engine.cgroups.layout(), limits(&after)).await?;
    }
    let applied = {
        let (engine, before, after) = (Arc::clone(&engine), before.clone(), after.clone());
        let cgroups = engine.cgroups.clone();
        engine
            .blocking(move || {
                let refused =
                    |error| RuntimeError::because("cannot update the resource limits", &error);
                cgroups.apply(&cgroup, &limits(&after)).map_err(|error| {
                    // The first error is the one to report.
                    let _ = cgroups.apply(&cgroup, &limits(&before));
                    refused(error)
                })
            })
            .await
    };
    if let Err(error) = applied {
        if !unit.is_empty() {
            // systemd would apply the refused limits with its next change of the unit.
            let _ = scope::set_limits(unit, engine.cgroups.layout(), limits(&before)).await;
        }
        return Err(error);
    }
    container.change(|record| record.resources = after);
    engine.save_container(&container).await
}

/// Device rules are set once, at creation.
fn limits(resources: &LinuxResources) -> LinuxResources {
    LinuxResources {
        devices: Vec::new(),
        ..resources.clone()
    }
}

/// A notification: the kubelet has set these limits on the pod's cgroup itself. Nothing to do, as
/// in containerd.
pub(crate) fn update_sandbox(
    engine: &Engine,
    request: &v1::UpdatePodSandboxResourcesRequest,
) -> Result<()> {
    let id = &request.pod_sandbox_id;
    let found = engine.sandbox(SandboxCall::Update, id)?;
    let sandbox = found.ok_or_else(|| RuntimeError::sandbox_not_found(id))?;
    sandbox.decision(SandboxCall::Update).map(|_| ())
}
