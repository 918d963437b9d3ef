//! What all calls share.

use std::{sync::Arc, time::Duration};

use rubelet_base::cgroup::CgroupPath;
use rubelet_cni::PodNetwork;
use rubelet_cri::{ContainerEvent, v1::ContainerEventType};
use rubelet_host::{CgroupFs, Removal, net_lock::NetLock};
use rubelet_images::ImageStore;
use rubelet_runtime_plan::{
    host::HostFacts,
    record::ExitRecord,
    state::{
        ContainerCall, ContainerPhase, SandboxCall, SandboxPhase, container as container_verdict,
        sandbox as sandbox_verdict,
    },
};
use tokio::sync::Semaphore;

use crate::{
    clock,
    container::{Container, filters::DefaultFilters, note_exit},
    events::EventHub,
    fault::{Fault, Outcome},
    host_paths::HostPaths,
    kept::{self, KeptContainer, KeptSandbox},
    layout::Layout,
    link::ShimLink,
    ownership::Ownership,
    sandbox::Sandbox,
    settings::RuntimeSettings,
    table::Table,
};

/// How many short pieces of blocking work are done at a time. Each may cost a thread.
pub(crate) const THREADS: usize = 8;

/// How long processes that were killed may take to be gone. The kernel needs some milliseconds;
/// one that waits for a dead disk may need for ever.
const DYING: Duration = Duration::from_secs(10);

/// Pauses between two looks at a cgroup whose processes are dying.
const LOOK: Duration = Duration::from_millis(2);

/// The runtime's inside.
pub(crate) struct Engine {
    pub(crate) settings: RuntimeSettings,
    pub(crate) layout: Layout,
    pub(crate) facts: HostFacts,
    pub(crate) boot_id: String,
    pub(crate) cgroups: CgroupFs,
    pub(crate) images: Arc<ImageStore>,
    pub(crate) network: Arc<dyn PodNetwork>,
    pub(crate) events: EventHub,
    pub(crate) table: Arc<Table>,
    pub(crate) threads: Semaphore,
    pub(crate) filters: DefaultFilters,
    pub(crate) paths: Arc<HostPaths>,
    /// Ends with the runtime.
    pub(crate) _ownership: [Ownership; 2],
    /// Likewise.
    pub(crate) _bridge: Option<NetLock>,
}

impl Engine {
    /// Does short blocking work on another thread, few at a time.
    pub(crate) async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Outcome<T> + Send + 'static,
    ) -> Outcome<T> {
        // It is never closed.
        let _turn = self.threads.acquire().await;
        unbounded(work).await
    }

    /// The sandbox that a call is about; `None` where that is success.
    pub(crate) fn sandbox(&self, call: SandboxCall, id: &str) -> Outcome<Option<Arc<Sandbox>>> {
        let found = self.table.sandbox(id);
        if found.is_none() {
            sandbox_verdict(call, id, None)?;
        }
        Ok(found)
    }

    /// The container that a call is about; `None` where that is success.
    pub(crate) fn container(
        &self,
        call: ContainerCall,
        id: &str,
    ) -> Outcome<Option<Arc<Container>>> {
        let found = self.table.container(id);
        if found.is_none() {
            container_verdict(call, id, None, None)?;
        }
        Ok(found)
    }

    /// Tells subscribers of a container.
    pub(crate) fn tell(&self, kind: ContainerEventType, container: &Container) {
        self.tell_of(kind, &container.id, &container.sandbox);
    }

    /// Tells subscribers of a sandbox.
    pub(crate) fn tell_sandbox(&self, kind: ContainerEventType, sandbox: &Sandbox) {
        self.tell_of(kind, &sandbox.id, sandbox);
    }

    fn tell_of(&self, kind: ContainerEventType, id: &str, sandbox: &Sandbox) {
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
    pub(crate) async fn save_sandbox(&self, sandbox: &Arc<Sandbox>) -> Outcome<()> {
        let _order = sandbox.saving.lock().await;
        if sandbox.phase() == SandboxPhase::Removing {
            return Ok(());
        }
        let path = self.layout.sandbox_record(&sandbox.id);
        let sandbox = Arc::clone(sandbox);
        self.blocking(move || kept::save(&path, &KeptSandbox((*sandbox.record()).clone())))
            .await
    }

    /// Writes a container's record as it is now.
    pub(crate) async fn save_container(&self, container: &Arc<Container>) -> Outcome<()> {
        let _order = container.saving.lock().await;
        if container.phase() == ContainerPhase::Removing {
            return Ok(());
        }
        let path = self.layout.container_record(&container.id);
        let container = Arc::clone(container);
        self.blocking(move || kept::save(&path, &KeptContainer((*container.record()).clone())))
            .await
    }

    /// Writes a container's record with an exit that is not told yet.
    pub(crate) async fn save_exit(
        &self,
        container: &Arc<Container>,
        exit: &ExitRecord,
    ) -> Outcome<()> {
        let _order = container.saving.lock().await;
        let mut record = (*container.record()).clone();
        if record.phase == ContainerPhase::Removing || !note_exit(&mut record, exit.clone()) {
            return Ok(());
        }
        let path = self.layout.container_record(&container.id);
        self.blocking(move || kept::save(&path, &KeptContainer(record)))
            .await
    }

    /// Writes a container's record behind the caller's back. What it tells is known to the
    /// supervisor, too, so that a failure costs nothing before the host boots.
    pub(crate) fn save_container_later(self: &Arc<Self>, container: &Arc<Container>) {
        let (engine, container) = (Arc::clone(self), Arc::clone(container));
        tokio::spawn(async move {
            if let Err(fault) = engine.save_container(&container).await {
                tracing::warn!(container = container.id, %fault, "a container's record was not written");
            }
        });
    }

    /// As [`Self::save_container_later`], for a sandbox.
    pub(crate) fn save_sandbox_later(self: &Arc<Self>, sandbox: &Arc<Sandbox>) {
        let (engine, sandbox) = (Arc::clone(self), Arc::clone(sandbox));
        tokio::spawn(async move {
            if let Err(fault) = engine.save_sandbox(&sandbox).await {
                tracing::warn!(sandbox = sandbox.id, %fault, "a sandbox's record was not written");
            }
        });
    }

    /// Takes a supervisor's exit status from the kernel, once it has ended, so that it is no zombie.
    pub(crate) async fn reap(&self, link: &ShimLink) {
        if !link.wait_for_end(DYING).await {
            tracing::warn!(process = link.pid(), "a supervisor does not end");
            return;
        }
        link.reap().await;
    }

    /// Kills what is in a cgroup and removes it. One that isn't there is removed already.
    pub(crate) async fn clear_cgroup(&self, path: &CgroupPath) -> Outcome<()> {
        let end = tokio::time::Instant::now() + DYING;
        loop {
            let (cgroups, victim) = (self.cgroups.clone(), path.clone());
            let removal = self.blocking(move || clear_once(&cgroups, &victim)).await?;
            match removal {
                Removal::Gone => return Ok(()),
                Removal::StillBusy { dir } if tokio::time::Instant::now() >= end => {
                    return Err(Fault::failed(format!(
                        "processes in {} were killed and don't end; the kernel has them",
                        dir.display()
                    )));
                }
                Removal::StillBusy { .. } => tokio::time::sleep(LOOK).await,
            }
        }
    }
}

fn clear_once(cgroups: &CgroupFs, path: &CgroupPath) -> Outcome<Removal> {
    let remove = || {
        cgroups
            .remove(path)
            .map_err(|error| Fault::because("cannot clean up", &error))
    };
    match remove()? {
        Removal::Gone => Ok(Removal::Gone),
        Removal::StillBusy { .. } => {
            cgroups
                .kill(path)
                .map_err(|error| Fault::because("cannot clean up", &error))?;
            remove()
        }
    }
}

/// Does blocking work on another thread. For work that may hang on what is not ours, such as the
/// disk of a volume: it takes no turn from others.
pub(crate) async fn unbounded<T: Send + 'static>(
    work: impl FnOnce() -> Outcome<T> + Send + 'static,
) -> Outcome<T> {
    match tokio::task::spawn_blocking(work).await {
        Ok(outcome) => outcome,
        Err(_) => Err(Fault::failed(
            "a piece of work broke off: this is a mistake of the runtime",
        )),
    }
}

/// Does a call's work to its end, even if the caller goes away.
pub(crate) async fn to_the_end<T: Send + 'static>(
    work: impl Future<Output = Outcome<T>> + Send + 'static,
) -> Outcome<T> {
    match tokio::spawn(work).await {
        Ok(outcome) => outcome,
        Err(_) => Err(Fault::failed(
            "the call broke off: this is a mistake of the runtime",
        )),
    }
}
