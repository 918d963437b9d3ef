//! One sandbox: its record, its supervisor, its containers.

pub(crate) mod lost;
pub(crate) mod remove;
pub(crate) mod reports;
pub(crate) mod run;
pub(crate) mod stop;

use std::{
    collections::{BTreeMap, HashMap},
    path::PathBuf,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use rubelet_cni::{NetworkRequest, PortMapping, Protocol};
use rubelet_cri::v1;
use rubelet_runtime_plan::{
    record::SandboxRecord,
    state::{SandboxCall, SandboxPhase, Verdict, sandbox as verdict},
};
use tokio::sync::{RwLock, oneshot};

use crate::{
    container::Container,
    events::lock,
    fault::{Fault, Outcome},
    link::{ShimLink, gone},
    stats::Rate,
};

/// A sandbox. Its record is the truth about it; locks are held for moments only, except `calls`.
#[derive(Debug)]
pub(crate) struct Sandbox {
    pub(crate) id: String,
    record: Mutex<Arc<SandboxRecord>>,
    /// Calls that make containers share it; those that stop or remove the sandbox have it alone.
    pub(crate) calls: RwLock<()>,
    /// Held while the record is written, so that an older one can't come after a newer one.
    pub(crate) saving: tokio::sync::Mutex<()>,
    link: Mutex<Option<Arc<ShimLink>>>,
    /// All containers, with those that are being made.
    members: Mutex<BTreeMap<String, Arc<Container>>>,
    /// Who waits for the end of which command in a container.
    execs: Mutex<HashMap<String, oneshot::Sender<i32>>>,
    /// Where the pod's namespaces can be joined, as the supervisor told.
    namespaces: Mutex<BTreeMap<String, PathBuf>>,
    /// Set before the supervisor is told to end.
    ending: AtomicBool,
    /// Processor use per second.
    pub(crate) rate: Mutex<Rate>,
}

impl Sandbox {
    pub(crate) fn new(record: SandboxRecord) -> Arc<Self> {
        Arc::new(Self {
            id: record.id.clone(),
            record: Mutex::new(Arc::new(record)),
            calls: RwLock::new(()),
            saving: tokio::sync::Mutex::new(()),
            link: Mutex::new(None),
            members: Mutex::new(BTreeMap::new()),
            execs: Mutex::new(HashMap::new()),
            namespaces: Mutex::new(BTreeMap::new()),
            ending: AtomicBool::new(false),
            rate: Mutex::new(Rate::default()),
        })
    }

    /// Stands for a sandbox without a record, for as long as a container of it is not removed.
    pub(crate) fn orphanage(id: &str, boot_id: &str) -> Arc<Self> {
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

    pub(crate) fn record(&self) -> Arc<SandboxRecord> {
        Arc::clone(&lock(&self.record))
    }

    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut SandboxRecord) -> T) -> T {
        change(Arc::make_mut(&mut lock(&self.record)))
    }

    pub(crate) fn phase(&self) -> SandboxPhase {
        lock(&self.record).phase
    }

    /// What a call does now.
    pub(crate) fn verdict(&self, call: SandboxCall) -> Outcome<Verdict> {
        Ok(verdict(call, &self.id, Some(self.phase()))?)
    }

    /// The supervisor.
    pub(crate) fn link(&self) -> Outcome<Arc<ShimLink>> {
        self.live_link().ok_or_else(gone)
    }

    /// The supervisor, unless it has ended.
    pub(crate) fn live_link(&self) -> Option<Arc<ShimLink>> {
        lock(&self.link).clone().filter(|link| !link.has_ended())
    }

    /// Whether the supervisor's process is there although the connection may have ended.
    pub(crate) fn link_of_live_process(&self) -> bool {
        lock(&self.link)
            .as_ref()
            .is_some_and(|link| link.process_lives())
    }

    pub(crate) fn set_link(&self, link: Arc<ShimLink>) {
        *lock(&self.link) = Some(link);
    }

    pub(crate) fn take_link(&self) -> Option<Arc<ShimLink>> {
        lock(&self.link).take()
    }

    pub(crate) fn set_namespaces(&self, namespaces: BTreeMap<String, PathBuf>) {
        *lock(&self.namespaces) = namespaces;
    }

    /// Where the namespace of a kind can be joined, by the name that the OCI has for it.
    pub(crate) fn namespace(&self, kind: &str) -> Option<PathBuf> {
        lock(&self.namespaces).get(kind).cloned()
    }

    /// From now on the end of the supervisor is what was wanted.
    pub(crate) fn expect_end(&self) {
        self.ending.store(true, Ordering::SeqCst);
    }

    pub(crate) fn expects_end(&self) -> bool {
        self.ending.load(Ordering::SeqCst)
    }

    pub(crate) fn add_member(&self, container: &Arc<Container>) {
        lock(&self.members).insert(container.id.clone(), Arc::clone(container));
    }

    pub(crate) fn remove_member(&self, id: &str) {
        lock(&self.members).remove(id);
    }

    pub(crate) fn member(&self, id: &str) -> Option<Arc<Container>> {
        lock(&self.members).get(id).cloned()
    }

    pub(crate) fn members(&self) -> Vec<Arc<Container>> {
        lock(&self.members).values().cloned().collect()
    }

    /// To be called before the command is started.
    pub(crate) fn await_exec(&self, exec: &str) -> oneshot::Receiver<i32> {
        let (ended, wait) = oneshot::channel();
        lock(&self.execs).insert(exec.to_owned(), ended);
        wait
    }

    pub(crate) fn forget_exec(&self, exec: &str) -> Option<oneshot::Sender<i32>> {
        lock(&self.execs).remove(exec)
    }

    /// Nobody will tell of their ends any more.
    pub(crate) fn forget_execs(&self) {
        lock(&self.execs).clear();
    }

    /// Whether the pod has a network of its own.
    pub(crate) fn has_network(&self) -> bool {
        lock(&self.record).namespaces.network != v1::NamespaceMode::Node as i32
    }
}

/// What the pod's network is asked with, from the sandbox's record.
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

/// Ports without a host port need nothing of the network.
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

impl From<rubelet_runtime_plan::state::StateError> for Fault {
    fn from(error: rubelet_runtime_plan::state::StateError) -> Self {
        use rubelet_runtime_plan::state::StateError;
        match error {
            StateError::NotFound(text) => Self::not_found(text),
            StateError::Precondition(text) => Self::state(text),
        }
    }
}

impl From<rubelet_runtime_plan::Refusal> for Fault {
    fn from(refusal: rubelet_runtime_plan::Refusal) -> Self {
        Self::invalid(refusal.to_string())
    }
}
