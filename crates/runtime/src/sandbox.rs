//! One sandbox: its record, its shim, its containers.

pub(crate) mod remove;
pub(crate) mod run;
mod session_waiters;
pub(crate) mod shim_events;
pub(crate) mod shim_exit;
pub(crate) mod stop;

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use parking_lot::Mutex;
use rubelet_cni::{NetworkRequest, PortMapping, Protocol};
use rubelet_cri::v1;
use rubelet_runtime_plan::{
    record::SandboxRecord,
    state::{CallDecision, SandboxCall, SandboxPhase, sandbox as decision},
};
use tokio::sync::{RwLock, RwLockWriteGuard, watch};

use crate::{
    container::Container,
    error::{Result, RuntimeError},
    rates::CpuRate,
    shim_client::{ShimClient, shim_exited},
};

pub(crate) use session_waiters::{ExecEnd, SessionWaiters};

/// A sandbox. Its record is authoritative. Locks are held briefly, except `calls`.
#[derive(Debug)]
pub(crate) struct Sandbox {
    pub(crate) id: String,
    record: Mutex<Arc<SandboxRecord>>,
    /// Read-locked by calls that create containers, write-locked by those that stop or remove the
    /// sandbox.
    pub(crate) calls: RwLock<()>,
    /// Number of calls that wait to stop or remove the sandbox; long operations give way to them.
    stops: watch::Sender<usize>,
    /// Held while the record is written, so that an older version can't overwrite a newer one.
    pub(crate) saving: tokio::sync::Mutex<()>,
    link: Mutex<Option<Arc<ShimClient>>>,
    /// All containers, including those in creation.
    members: Mutex<BTreeMap<String, Arc<Container>>>,
    /// Callers that wait for the shim's events of execs and attachments.
    pub(crate) waiters: SessionWaiters,
    /// Paths by which the pod's namespaces can be joined, from the shim.
    namespaces: Mutex<BTreeMap<String, PathBuf>>,
    /// Set before the shim is ordered to exit.
    ending: AtomicBool,
    /// Whether the record says that the pod runs no longer.
    stopped: watch::Sender<bool>,
    /// Processor use per second.
    pub(crate) rate: Mutex<CpuRate>,
}

/// One more call that waits to stop or remove a sandbox, until it is dropped.
struct StopWaiter<'a>(&'a watch::Sender<usize>);

impl<'a> StopWaiter<'a> {
    fn begin(stops: &'a watch::Sender<usize>) -> Self {
        stops.send_modify(|waiting| *waiting += 1);
        Self(stops)
    }
}

impl Drop for StopWaiter<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|waiting| *waiting -= 1);
    }
}

impl Sandbox {
    pub(crate) fn new(record: SandboxRecord) -> Arc<Self> {
        Arc::new(Self {
            id: record.id.clone(),
            record: Mutex::new(Arc::new(record)),
            calls: RwLock::new(()),
            stops: watch::Sender::new(0),
            saving: tokio::sync::Mutex::new(()),
            link: Mutex::new(None),
            members: Mutex::new(BTreeMap::new()),
            waiters: SessionWaiters::default(),
            namespaces: Mutex::new(BTreeMap::new()),
            ending: AtomicBool::new(false),
            stopped: watch::Sender::new(false),
            rate: Mutex::new(CpuRate::default()),
        })
    }

    /// Stands in for a sandbox without a record until its containers are removed.
    pub(crate) fn placeholder(id: &str, boot_id: &str) -> Arc<Self> {
        Self::new(SandboxRecord {
            id: id.to_owned(),
            boot_id: boot_id.to_owned(),
            name: String::new(),
            namespace: String::new(),
            uid: String::new(),
            attempt: 0,
            phase: SandboxPhase::Removing,
            created_at: 0,
            labels: BTreeMap::new(),
            annotations: BTreeMap::new(),
            runtime_handler: String::new(),
            log_directory: String::new(),
            cgroup_parent: String::new(),
            shim_cgroup: String::new(),
            shim_pid: 0,
            namespaces: rubelet_runtime_plan::record::NamespaceModes::default(),
            ips: Vec::new(),
            ports: Vec::new(),
            network_held: false,
        })
    }

    /// Locks the sandbox for a call that stops or removes it. Waits for calls that create
    /// containers.
    pub(crate) async fn lock_exclusively(&self) -> RwLockWriteGuard<'_, ()> {
        let _waits = StopWaiter::begin(&self.stops);
        self.calls.write().await
    }

    /// Resolves when a call waits to stop or remove the sandbox.
    pub(crate) async fn stop_requested(&self) {
        // The sender is this value's.
        let _ = self
            .stops
            .subscribe()
            .wait_for(|waiting| *waiting > 0)
            .await;
    }

    pub(crate) fn record(&self) -> Arc<SandboxRecord> {
        Arc::clone(&self.record.lock())
    }

    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut SandboxRecord) -> T) -> T {
        let mut record = self.record.lock();
        let changed = change(Arc::make_mut(&mut record));
        if matches!(
            record.phase,
            SandboxPhase::NotReady | SandboxPhase::Removing
        ) {
            self.stopped
                .send_if_modified(|stopped| !std::mem::replace(stopped, true));
        }
        changed
    }

    /// Resolves once the pod runs no longer.
    pub(crate) async fn stopped(&self) {
        // The sender is this value's.
        let _ = self.stopped.subscribe().wait_for(|stopped| *stopped).await;
    }

    pub(crate) fn phase(&self) -> SandboxPhase {
        self.record.lock().phase
    }

    /// The action of a call in the present state.
    pub(crate) fn decision(&self, call: SandboxCall) -> Result<CallDecision> {
        Ok(decision(call, &self.id, Some(self.phase()))?)
    }

    /// The connection to the shim.
    pub(crate) fn link(&self) -> Result<Arc<ShimClient>> {
        self.live_link().ok_or_else(shim_exited)
    }

    /// The connection to the shim, unless the shim has exited.
    pub(crate) fn live_link(&self) -> Option<Arc<ShimClient>> {
        self.link.lock().clone().filter(|link| !link.has_exited())
    }

    /// Reports whether the shim's process still runs, even if the connection broke.
    pub(crate) fn shim_process_lives(&self) -> bool {
        self.link
            .lock()
            .as_ref()
            .is_some_and(|link| link.process_lives())
    }

    pub(crate) fn set_link(&self, link: Arc<ShimClient>) {
        *self.link.lock() = Some(link);
    }

    pub(crate) fn take_link(&self) -> Option<Arc<ShimClient>> {
        self.link.lock().take()
    }

    pub(crate) fn set_namespaces(&self, namespaces: BTreeMap<String, PathBuf>) {
        *self.namespaces.lock() = namespaces;
    }

    /// The path of a namespace, by the kind's name in the OCI specification.
    pub(crate) fn namespace(&self, kind: &str) -> Option<PathBuf> {
        self.namespaces.lock().get(kind).cloned()
    }

    /// From now on the exit of the shim is expected.
    pub(crate) fn expect_exit(&self) {
        self.ending.store(true, Ordering::SeqCst);
    }

    pub(crate) fn expects_exit(&self) -> bool {
        self.ending.load(Ordering::SeqCst)
    }

    pub(crate) fn add_member(&self, container: &Arc<Container>) {
        self.members
            .lock()
            .insert(container.id.clone(), Arc::clone(container));
    }

    pub(crate) fn remove_member(&self, id: &str) {
        self.members.lock().remove(id);
    }

    pub(crate) fn member(&self, id: &str) -> Option<Arc<Container>> {
        self.members.lock().get(id).cloned()
    }

    pub(crate) fn members(&self) -> Vec<Arc<Container>> {
        self.members.lock().values().cloned().collect()
    }

    /// Reports whether the pod has its own network.
    pub(crate) fn has_network(&self) -> bool {
        self.record.lock().namespaces.network != v1::NamespaceMode::Node as i32
    }
}

/// The network request of a sandbox, from its record.
pub(crate) fn network_request(record: &SandboxRecord, netns: PathBuf) -> NetworkRequest {
    NetworkRequest {
        sandbox: record.id.clone(),
        netns,
        pod_name: record.name.clone(),
        pod_namespace: record.namespace.clone(),
        pod_uid: record.uid.clone(),
        port_mappings: record.ports.iter().filter_map(port).collect(),
        annotations: record.annotations.clone(),
        cgroup_parent: record.cgroup_parent.clone(),
        dns: rubelet_cni::Dns::default(),
    }
}

/// Ports without a host port need no mapping.
fn port(port: &rubelet_runtime_plan::record::PortRecord) -> Option<PortMapping> {
    Some(PortMapping {
        protocol: match v1::Protocol::try_from(port.protocol).ok()? {
            v1::Protocol::Tcp => Protocol::Tcp,
            v1::Protocol::Udp => Protocol::Udp,
            v1::Protocol::Sctp => Protocol::Sctp,
        },
        container_port: u16::try_from(port.container_port).ok()?,
        host_port: u16::try_from(port.host_port)
            .ok()
            .filter(|&port| port > 0)?,
        host_ip: port.host_ip.parse().ok(),
    })
}

impl From<rubelet_runtime_plan::state::StateError> for RuntimeError {
    fn from(error: rubelet_runtime_plan::state::StateError) -> Self {
        use rubelet_runtime_plan::state::StateError;
        match error {
            StateError::NotFound(text) => Self::not_found(text),
            StateError::Precondition(text) => Self::state(text),
        }
    }
}

impl From<rubelet_runtime_plan::Refusal> for RuntimeError {
    fn from(refusal: rubelet_runtime_plan::Refusal) -> Self {
        Self::invalid(refusal.to_string())
    }
}
