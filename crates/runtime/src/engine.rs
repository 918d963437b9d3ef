//! The state that all calls share.

use std::{sync::Arc, time::Duration};

use rubelet_cgroup_plan::CgroupPath;
use rubelet_cni::PodNetwork;
use rubelet_cri::{ContainerEvent, v1::ContainerEventType};
use rubelet_host::{CgroupFs, CgroupRemoval, net_lock::NetLock};
use rubelet_images::ImageStore;
use rubelet_runtime_plan::{
    host::HostFacts,
    record::ExitRecord,
    state::{
        ContainerCall, ContainerPhase, SandboxCall, SandboxPhase, container as container_decision,
        sandbox as sandbox_decision,
    },
};
use tokio::sync::Semaphore;

use crate::{
    blocking::unbounded,
    clock,
    container::{Container, filters::DefaultFilters},
    error::{Result, RuntimeError},
    events::EventHub,
    host_paths::HostPaths,
    layout::Layout,
    ownership::Ownership,
    records::{self, StoredContainer, StoredSandbox},
    sandbox::Sandbox,
    settings::RuntimeSettings,
    shim_client::ShimClient,
    table::ObjectTable,
};

/// Maximum concurrent short blocking operations. Each may use a thread.
pub(crate) const THREADS: usize = 8;

/// Timeout for the exit of killed processes. It usually takes some milliseconds; a process in
/// uninterruptible sleep, such as on a dead disk, may never exit.
const KILL_TIMEOUT: Duration = Duration::from_secs(10);

/// Interval between two checks of a cgroup whose processes were killed.
const CGROUP_POLL_INTERVAL: Duration = Duration::from_millis(2);

/// The shared parts of the runtime.
pub(crate) struct Engine {
    pub(crate) settings: RuntimeSettings,
    pub(crate) layout: Layout,
    pub(crate) facts: HostFacts,
    pub(crate) boot_id: String,
    pub(crate) cgroups: CgroupFs,
    pub(crate) images: Arc<ImageStore>,
    pub(crate) network: Arc<dyn PodNetwork>,
    pub(crate) events: EventHub,
    pub(crate) table: Arc<ObjectTable>,
    pub(crate) threads: Semaphore,
    pub(crate) filters: DefaultFilters,
    pub(crate) paths: Arc<HostPaths>,
    /// Released when the runtime ends.
    pub(crate) _ownership: [Ownership; 2],
    /// Released when the runtime ends, too.
    pub(crate) _bridge: Option<NetLock>,
}

impl Engine {
    /// Runs a short blocking operation on another thread, at most [`THREADS`] at a time.
    pub(crate) async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T> + Send + 'static,
    ) -> Result<T> {
        // The semaphore is never closed.
        let _turn = self.threads.acquire().await;
        unbounded(work).await
    }

    /// The sandbox that a call is about; `None` if it does not exist and that is success for this
    /// call.
    pub(crate) fn sandbox(&self, call: SandboxCall, id: &str) -> Result<Option<Arc<Sandbox>>> {
        let found = self.table.sandbox(id);
        if found.is_none() {
            sandbox_decision(call, id, None)?;
        }
        Ok(found)
    }

    /// The container that a call is about; `None` if it does not exist and that is success for this
    /// call.
    pub(crate) fn container(
        &self,
        call: ContainerCall,
        id: &str,
    ) -> Result<Option<Arc<Container>>> {
        let found = self.table.container(id);
        if found.is_none() {
            container_decision(call, id, None, None)?;
        }
        Ok(found)
    }

    /// Publishes an event of a container.
    pub(crate) fn publish(&self, kind: ContainerEventType, container: &Container) {
        self.publish_event(kind, &container.id, &container.sandbox);
    }

    /// Publishes an event of a sandbox.
    pub(crate) fn publish_sandbox(&self, kind: ContainerEventType, sandbox: &Sandbox) {
        self.publish_event(kind, &sandbox.id, sandbox);
    }

    fn publish_event(&self, kind: ContainerEventType, id: &str, sandbox: &Sandbox) {
        self.events.send(ContainerEvent {
            container: id.to_owned(),
            kind,
            created_at: clock::now_ns(),
            sandbox: Some(sandbox.id.clone()),
            pod_uid: Some(sandbox.record().uid.clone()),
            sequence: None,
        });
    }

    /// Writes a sandbox's record as it is now.
    pub(crate) async fn save_sandbox(&self, sandbox: &Arc<Sandbox>) -> Result<()> {
        let _order = sandbox.saving.lock().await;
        // Under the lock: a removal sets the phase first, and then waits for a write in progress.
        if sandbox.phase() == SandboxPhase::Removing {
            return Ok(());
        }
        let path = self.layout.sandbox_record(&sandbox.id);
        let sandbox = Arc::clone(sandbox);
        self.blocking(move || records::save(&path, &StoredSandbox((*sandbox.record()).clone())))
            .await
    }

    /// Writes a container's record as it is now.
    pub(crate) async fn save_container(&self, container: &Arc<Container>) -> Result<()> {
        let _order = container.saving.lock().await;
        if container.phase() == ContainerPhase::Removing {
            return Ok(());
        }
        let path = self.layout.container_record(&container.id);
        let container = Arc::clone(container);
        self.blocking(move || records::save(&path, &StoredContainer((*container.record()).clone())))
            .await
    }

    /// Writes a container's record with an exit that is not published yet.
    pub(crate) async fn save_exit(
        &self,
        container: &Arc<Container>,
        exit: &ExitRecord,
    ) -> Result<()> {
        let _order = container.saving.lock().await;
        let mut record = (*container.record()).clone();
        if record.phase == ContainerPhase::Removing || !record.note_exit(exit.clone()) {
            return Ok(());
        }
        let path = self.layout.container_record(&container.id);
        self.blocking(move || records::save(&path, &StoredContainer(record)))
            .await
    }

    /// Writes a container's record in the background. The shim knows the same state, so a failed
    /// write loses nothing until the host reboots.
    pub(crate) fn save_container_later(self: &Arc<Self>, container: &Arc<Container>) {
        let (engine, container) = (Arc::clone(self), Arc::clone(container));
        tokio::spawn(async move {
            if let Err(error) = engine.save_container(&container).await {
                tracing::warn!(container = container.id, %error, "Failed to write the record of a container");
            }
        });
    }

    /// As [`Self::save_container_later`], for a sandbox.
    pub(crate) fn save_sandbox_later(self: &Arc<Self>, sandbox: &Arc<Sandbox>) {
        let (engine, sandbox) = (Arc::clone(self), Arc::clone(sandbox));
        tokio::spawn(async move {
            if let Err(error) = engine.save_sandbox(&sandbox).await {
                tracing::warn!(sandbox = sandbox.id, %error, "Failed to write the record of a sandbox");
            }
        });
    }

    /// Reaps a shim after its exit, so that it does not remain a zombie.
    pub(crate) async fn reap(&self, link: &ShimClient) {
        if !link.wait_for_exit(KILL_TIMEOUT).await {
            tracing::warn!(process = link.pid(), "A shim did not exit after SIGKILL");
            return;
        }
        link.reap().await;
    }

    /// Kills all processes of a cgroup and removes it. Succeeds if the cgroup does not exist.
    pub(crate) async fn clear_cgroup(&self, path: &CgroupPath) -> Result<()> {
        let end = tokio::time::Instant::now() + KILL_TIMEOUT;
        loop {
            let (cgroups, victim) = (self.cgroups.clone(), path.clone());
            let removal = self.blocking(move || clear_once(&cgroups, &victim)).await?;
            match removal {
                CgroupRemoval::Gone => return Ok(()),
                CgroupRemoval::StillBusy { dir } if tokio::time::Instant::now() >= end => {
                    return Err(RuntimeError::failed(format!(
                        "processes in cgroup {} did not exit after SIGKILL; they may be in uninterruptible sleep (state D)",
                        dir.display()
                    )));
                }
                CgroupRemoval::StillBusy { .. } => tokio::time::sleep(CGROUP_POLL_INTERVAL).await,
            }
        }
    }
}

fn clear_once(cgroups: &CgroupFs, path: &CgroupPath) -> Result<CgroupRemoval> {
    let remove = || {
        cgroups
            .remove(path)
            .map_err(|error| RuntimeError::because("cannot clean up", &error))
    };
    // Usually nothing runs in it any more, and no kill is needed.
    match remove()? {
        CgroupRemoval::Gone => Ok(CgroupRemoval::Gone),
        CgroupRemoval::StillBusy { .. } => {
            cgroups
                .kill(path)
                .map_err(|error| RuntimeError::because("cannot clean up", &error))?;
            remove()
        }
    }
}

/// Completes a call even if the caller goes away.
pub(crate) async fn run_uncancellable<T: Send + 'static>(
    work: impl Future<Output = Result<T>> + Send + 'static,
) -> Result<T> {
    match tokio::spawn(work).await {
        Ok(outcome) => outcome,
        Err(_) => Err(RuntimeError::failed("the call panicked; this is a bug")),
    }
}
