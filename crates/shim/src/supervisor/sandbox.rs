//! The pod's namespaces, held open by descriptors, and its mounts.

use std::{
    collections::BTreeMap,
    fs::{self, OpenOptions},
    os::fd::{AsRawFd as _, OwnedFd},
    path::Path,
};

use rubelet_base::ErrorChain;
use rubelet_container::{JoinedNamespaces, NamespaceOptions, PodNamespaces, make_namespaces};
use rubelet_host::{CgroupFs, mount};
use rubelet_oci::NamespaceKind;
use rustix::mount::MountFlags;

use crate::{
    protocol::{CallFailure, FailureKind, SandboxSetup, SandboxState, ShmMount},
    runtime::{host_failure, send_signal},
};

/// The sandbox of the pod.
#[derive(Debug)]
pub(super) struct Sandbox {
    setup: SandboxSetup,
    namespaces: PodNamespaces,
}

impl Sandbox {
    /// Creates the sandbox; rolls back if a step fails.
    pub(super) fn make(
        setup: SandboxSetup,
        cgroups: Result<&CgroupFs, CallFailure>,
    ) -> Result<Self, CallFailure> {
        let has = |kind| setup.namespaces.contains(&kind);
        let known = [
            NamespaceKind::Network,
            NamespaceKind::Ipc,
            NamespaceKind::Uts,
            NamespaceKind::Pid,
        ];
        if let Some(kind) = setup.namespaces.iter().find(|kind| !known.contains(kind)) {
            return Err(CallFailure::new(
                FailureKind::Invalid,
                format!("containers of a pod cannot share a {kind:?} namespace"),
            ));
        }
        let wanted = NamespaceOptions {
            net: has(NamespaceKind::Network),
            ipc: has(NamespaceKind::Ipc),
            uts: has(NamespaceKind::Uts),
            pid: has(NamespaceKind::Pid),
            user: setup.user.clone(),
            hostname: setup.hostname.clone(),
            sysctls: setup.sysctls.clone(),
        };
        let namespaces = make_namespaces(&wanted).map_err(|error| {
            CallFailure::new(FailureKind::Runtime, ErrorChain(&error).to_string())
        })?;
        let sandbox = Self { setup, namespaces };
        match sandbox.place_pause(cgroups).and_then(|()| sandbox.mount()) {
            Ok(()) => Ok(sandbox),
            Err(failure) => {
                // The agent has no record of these resources, so only the shim can remove them.
                let _ = sandbox.end();
                Err(failure)
            }
        }
    }

    fn place_pause(&self, cgroups: Result<&CgroupFs, CallFailure>) -> Result<(), CallFailure> {
        let (Some(pause), Some(cgroup)) = (&self.namespaces.pause, &self.setup.cgroup) else {
            return Ok(());
        };
        let target = cgroups?.create(cgroup).map_err(|error| {
            host_failure("cannot create the cgroup of the pause process", error)
        })?;
        target.add(pause.pid).map_err(|error| {
            host_failure(
                &format!("cannot move the pause process to the cgroup {cgroup}"),
                error,
            )
        })
    }

    fn mount(&self) -> Result<(), CallFailure> {
        if let (Some(at), Some(net)) = (&self.setup.bind_net, &self.namespaces.net) {
            bind_namespace(net, at)?;
        }
        match &self.setup.shm {
            Some(shm) => mount_shm(shm),
            None => Ok(()),
        }
    }

    /// The PID of the pause process, if there is one.
    pub(super) fn pause_pid(&self) -> Option<i32> {
        self.namespaces.pause.as_ref().map(|pause| pause.pid)
    }

    /// The pause process was reaped.
    pub(super) fn pause_ended(&mut self) {
        self.namespaces.pause = None;
    }

    /// The namespaces that containers join.
    pub(super) fn joined(&self) -> JoinedNamespaces<'_> {
        self.namespaces.joined()
    }

    /// The state for the agent.
    pub(super) fn state(&self) -> SandboxState {
        let shim = std::process::id();
        let held = [
            ("network", &self.namespaces.net),
            ("ipc", &self.namespaces.ipc),
            ("uts", &self.namespaces.uts),
            ("user", &self.namespaces.user),
            ("pid", &self.namespaces.pid),
        ];
        let path = |fd: &OwnedFd| format!("/proc/{shim}/fd/{}", fd.as_raw_fd()).into();
        SandboxState {
            setup: self.setup.clone(),
            namespaces: held
                .into_iter()
                .filter_map(|(kind, fd)| Some((kind.to_owned(), path(fd.as_ref()?))))
                .collect::<BTreeMap<_, _>>(),
            pause_pid: self.pause_pid(),
        }
    }

    /// Kills the pause process and unmounts; returns the errors.
    pub(super) fn end(&self) -> Vec<String> {
        let mut problems = Vec::new();
        if let Some(pause) = &self.namespaces.pause {
            use std::os::fd::AsFd as _;
            // It may have exited already.
            let _ = send_signal(pause.pidfd.as_fd(), libc::SIGKILL);
        }
        let net = self
            .namespaces
            .net
            .as_ref()
            .and(self.setup.bind_net.as_ref());
        let shm = self.setup.shm.as_ref().map(|shm| &shm.path);
        for path in net.into_iter().chain(shm) {
            if let Err(error) = mount::unmount(path, true) {
                problems.push(format!("cannot unmount {}: {error}", path.display()));
            }
        }
        problems
    }
}

fn bind_namespace(net: &OwnedFd, at: &Path) -> Result<(), CallFailure> {
    // A file of an earlier attempt may exist: it is only a mount point, so its content is
    // irrelevant.
    OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .open(at)
        .map_err(|error| host_failure(&format!("cannot create {}", at.display()), error))?;
    mount::bind_fd(net, "the pod's network namespace", at)
        .map_err(|error| host_failure("cannot bind the network namespace", error))
}

fn mount_shm(shm: &ShmMount) -> Result<(), CallFailure> {
    let step = format!("cannot mount /dev/shm of the pod on {}", shm.path.display());
    fs::create_dir_all(&shm.path).map_err(|error| host_failure(&step, error))?;
    let options = format!("mode=1777,size={}", shm.size_bytes);
    let options =
        std::ffi::CString::new(options).expect("a number and fixed words have no zero byte");
    rustix::mount::mount(
        "shm",
        &shm.path,
        "tmpfs",
        MountFlags::NOEXEC | MountFlags::NOSUID | MountFlags::NODEV,
        options.as_c_str(),
    )
    .map_err(|error| host_failure(&step, error))
}
