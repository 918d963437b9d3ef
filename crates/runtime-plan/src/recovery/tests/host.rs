//! A host that can be looked at, and on which steps can be carried out.

use super::*;

pub(super) const BOOT: &str = "boot";
pub(super) const NOW: i64 = 1000;

/// Everything that a runtime leaves on a host.
#[derive(Debug, Clone)]
pub(super) struct Host {
    pub(super) boot_id: String,
    pub(super) sandboxes: BTreeMap<String, SandboxRecord>,
    pub(super) containers: BTreeMap<String, ContainerRecord>,
    pub(super) shims: BTreeMap<String, BTreeMap<String, SeenContainer>>,
    pub(super) exits: BTreeMap<String, ExitRecord>,
    pub(super) directories: BTreeMap<String, Vec<String>>,
    pub(super) mounts: Vec<PathBuf>,
    pub(super) shim_cgroups: Vec<String>,
    pub(super) snapshots: Vec<String>,
    /// Cgroups with processes, the containers' among them.
    pub(super) alive: BTreeSet<String>,
}

pub(super) fn sandbox(id: &str, phase: SandboxPhase) -> SandboxRecord {
    SandboxRecord {
        id: id.into(),
        boot_id: BOOT.into(),
        name: id.into(),
        namespace: "default".into(),
        uid: id.into(),
        attempt: 0,
        phase,
        created_at: 1,
        labels: Default::default(),
        annotations: Default::default(),
        runtime_handler: String::new(),
        log_directory: String::new(),
        cgroup_parent: "/pods".into(),
        shim_cgroup: format!("/shims/{id}"),
        shim_pid: 1,
        namespaces: Default::default(),
        ips: Vec::new(),
        ports: Vec::new(),
        network_held: true,
    }
}

pub(super) fn container(id: &str, sandbox: &str, phase: ContainerPhase) -> ContainerRecord {
    ContainerRecord {
        id: id.into(),
        sandbox_id: sandbox.into(),
        boot_id: BOOT.into(),
        name: id.into(),
        attempt: 0,
        phase,
        created_at: 1,
        started_at: 7,
        exit: (phase == ContainerPhase::Exited).then(|| ExitRecord::seen(0, 0, 8, false)),
        pid: 42,
        image: "busybox".into(),
        user_specified_image: String::new(),
        image_ref: String::new(),
        image_id: String::new(),
        labels: Default::default(),
        annotations: Default::default(),
        mounts: Vec::new(),
        log_path: String::new(),
        tty: false,
        stdin: false,
        stdin_once: false,
        resources: Default::default(),
        oom_score_adj: 0,
        user: Default::default(),
        stop_signal: 15,
        cgroup: format!("/pods/{id}"),
        scope: String::new(),
    }
}

impl Host {
    pub(super) fn new() -> Self {
        Self {
            boot_id: BOOT.into(),
            sandboxes: BTreeMap::new(),
            containers: BTreeMap::new(),
            shims: BTreeMap::new(),
            exits: BTreeMap::new(),
            directories: BTreeMap::new(),
            mounts: Vec::new(),
            shim_cgroups: Vec::new(),
            snapshots: Vec::new(),
            alive: BTreeSet::new(),
        }
    }

    /// A sandbox with its shim, directory and mounts.
    pub(super) fn add_sandbox(&mut self, record: SandboxRecord) {
        let id = record.id.clone();
        for mount in ["net", "shm"] {
            self.mounts
                .push(format!("/run/r/sandboxes/{id}/{mount}").into());
        }
        self.directories.entry(id.clone()).or_default();
        self.shims.insert(id.clone(), BTreeMap::new());
        self.alive.insert(format!("/shims/{id}"));
        self.shim_cgroups.push(id.clone());
        self.sandboxes.insert(id, record);
    }

    /// A container with its bundle and root file system.
    pub(super) fn add_container(&mut self, record: ContainerRecord) {
        let (id, sandbox) = (record.id.clone(), record.sandbox_id.clone());
        self.directories
            .entry(sandbox.clone())
            .or_default()
            .push(id.clone());
        self.snapshots.push(id.clone());
        self.mounts
            .push(format!("/run/r/sandboxes/{sandbox}/containers/{id}/rootfs").into());
        self.containers.insert(id, record);
    }

    /// What the shim says about a container.
    pub(super) fn see(&mut self, sandbox: &str, container: &str, seen: SeenContainer) {
        if !matches!(seen, SeenContainer::Exited(_)) {
            self.alive.insert(format!("/pods/{container}"));
        }
        let containers = self.shims.entry(sandbox.into()).or_default();
        containers.insert(container.into(), seen);
    }

    pub(super) fn kill_shim(&mut self, sandbox: &str) {
        self.shims.remove(sandbox);
        self.alive.remove(&format!("/shims/{sandbox}"));
    }

    pub(super) fn plan(&self) -> RecoveryPlan {
        let shim_cgroup = CgroupPath::parse("/shims").unwrap();
        plan(&RecoveryInput {
            boot_id: &self.boot_id,
            now: NOW,
            run: Path::new("/run/r"),
            shim_cgroup: &shim_cgroup,
            sandboxes: self
                .sandboxes
                .iter()
                .map(|(id, record)| (id.as_str(), record))
                .collect(),
            containers: self
                .containers
                .iter()
                .map(|(id, record)| (id.as_str(), record))
                .collect(),
            shims: self.shims.clone(),
            exits: self.exits.clone(),
            directories: self.directories.clone(),
            mounts: self.mounts.clone(),
            shim_cgroups: self.shim_cgroups.clone(),
            snapshots: self.snapshots.clone(),
        })
    }

    /// Carries out a step as the runtime would.
    pub(super) fn apply(&mut self, step: &RecoveryStep) {
        match step {
            RecoveryStep::Adopt { .. } => {}
            RecoveryStep::EndShim { sandbox } => {
                for container in self.shims.get(sandbox).into_iter().flatten() {
                    self.alive.remove(&format!("/pods/{}", container.0));
                }
                self.kill_shim(sandbox);
            }
            RecoveryStep::DeleteInShim { sandbox, container } => {
                if let Some(containers) = self.shims.get_mut(sandbox) {
                    containers.remove(container);
                }
                self.alive.remove(&format!("/pods/{container}"));
            }
            RecoveryStep::KillCgroup(path) => {
                self.alive.remove(path.as_str());
                if path
                    .parent()
                    .is_some_and(|parent| parent.as_str() == "/shims")
                {
                    self.shims.remove(path.name());
                    self.shim_cgroups.retain(|name| name != path.name());
                }
                for containers in self.shims.values_mut() {
                    let killed = SeenContainer::Exited(ExitRecord::seen(137, 9, NOW, false));
                    if let Some(seen) = containers.get_mut(path.name()) {
                        *seen = killed;
                    }
                }
            }
            RecoveryStep::MarkRunning {
                container,
                pid,
                started_at,
            } => {
                let record = self.containers.get_mut(container).unwrap();
                record.phase = ContainerPhase::Running;
                (record.pid, record.started_at) = (*pid, *started_at);
            }
            RecoveryStep::MarkExited { container, exit } => {
                let record = self.containers.get_mut(container).unwrap();
                record.phase = ContainerPhase::Exited;
                record.exit = Some(exit.clone());
            }
            RecoveryStep::MarkNotReady { sandbox } => {
                self.sandboxes.get_mut(sandbox).unwrap().phase = SandboxPhase::NotReady;
            }
            RecoveryStep::FreeNetwork { sandbox } => {
                self.sandboxes.get_mut(sandbox).unwrap().network_held = false;
            }
            RecoveryStep::Unmount(path) => self.mounts.retain(|mount| mount != path),
            RecoveryStep::RemoveDirectory(path) => {
                let mounted = self.mounts.iter().any(|mount| mount.starts_with(path));
                assert!(!mounted, "{path:?} still has a mount");
                let name = path.file_name().unwrap().to_str().unwrap();
                self.directories.remove(name);
                for bundles in self.directories.values_mut() {
                    bundles.retain(|bundle| bundle != name);
                }
            }
            RecoveryStep::RemoveSnapshot { container } => {
                assert!(!self.alive.contains(&format!("/pods/{container}")));
                self.snapshots.retain(|one| one != container);
            }
            RecoveryStep::RemoveContainer { container } => {
                assert!(!self.alive.contains(&format!("/pods/{container}")));
                self.containers.remove(container);
            }
            RecoveryStep::RemoveSandbox { sandbox } => {
                self.sandboxes.remove(sandbox);
            }
        }
    }
}
