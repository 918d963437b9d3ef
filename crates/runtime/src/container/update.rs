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
    fault::{Fault, Outcome},
};

/// Changes limits of a container. Those that the request leaves at zero stay as they are; when one
/// is refused by the kernel, those from before are put back.
pub(crate) async fn update(
    engine: Arc<Engine>,
    request: v1::UpdateContainerResourcesRequest,
) -> Outcome<()> {
    let id = &request.container_id;
    let found = engine.container(ContainerCall::Update, id)?;
    let container =
        found.ok_or_else(|| Fault::not_found(format!("there is no container {id:?}")))?;
    let _call = container.calls.lock().await;
    container.verdict(ContainerCall::Update)?;
    let wanted = request
        .linux
        .ok_or_else(|| Fault::invalid("the request has no limits for Linux"))?;
    let before = container.record().resources.clone();
    let after = resources::merge(&before, &wanted, &engine.facts)?;
    let cgroup = container.cgroup()?;
    let unit = container.record().scope.clone();
    if !unit.is_empty() {
        scope::set_limits(unit, engine.cgroups.layout(), limits(&after)).await?;
    }
    {
        let (engine, after) = (Arc::clone(&engine), after.clone());
        let cgroups = engine.cgroups.clone();
        engine
            .blocking(move || {
                let refused = |error| Fault::because("cannot change the limits", &error);
                cgroups.apply(&cgroup, &limits(&after)).map_err(|error| {
                    // The first error is the one to tell.
                    let _ = cgroups.apply(&cgroup, &limits(&before));
                    refused(error)
                })
            })
            .await?;
    }
    container.change(|record| record.resources = after);
    engine.save_container(&container).await
}

/// Device rules are made once, with the container.
fn limits(resources: &LinuxResources) -> LinuxResources {
    LinuxResources {
        devices: Vec::new(),
        ..resources.clone()
    }
}

/// The kubelet tells of limits of the pod that it has set itself, on the pod's cgroup: there is
/// nothing to do, as with containerd.
pub(crate) fn update_sandbox(
    engine: &Engine,
    request: &v1::UpdatePodSandboxResourcesRequest,
) -> Outcome<()> {
    let id = &request.pod_sandbox_id;
    let found = engine.sandbox(SandboxCall::Update, id)?;
    let sandbox = found.ok_or_else(|| Fault::not_found(format!("there is no sandbox {id:?}")))?;
    sandbox.verdict(SandboxCall::Update).map(|_| ())
}
