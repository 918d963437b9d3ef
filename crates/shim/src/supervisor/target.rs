//! The target container of a PID namespace (`TARGET` mode).
//!
//! A PID namespace is opened by a PID, which may be reused as soon as the container has exited and
//! was reaped. The shim is the one that reaps, so it opens the namespace here, and only the
//! descriptor is used from then on: by the embedded runtime directly, by an external one through a
//! link in the bundle to `/proc/SHIM/fd/N`. That path is valid while the shim runs, and dangles
//! afterwards. setns(2) refuses files of another type there.

use std::{
    fs, io,
    os::{
        fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd},
        unix::fs::symlink,
    },
    path::Path,
};

use rubelet_container::JoinedNamespaces;
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::{Mode, OFlags},
};

use super::{
    container_state::{ContainerState, Init},
    sandbox::Sandbox,
    shim::Shim,
};
use crate::{
    protocol::{CallFailure, CreateContainer, FailureKind},
    runtime::host_failure,
};

impl Shim {
    /// Opens the PID namespace of a running container, and creates the link in the bundle.
    pub(super) fn hold_target(&self, id: &str, bundle: &Path) -> Result<OwnedFd, CallFailure> {
        let slot = self.known(id)?;
        let target = &self.containers[&slot];
        let namespace = match &target.state {
            ContainerState::Running {
                init: Init::Alive { pid, handle },
                ..
            } if target.deletion.is_none() => open_namespace(*pid, handle)
                .map_err(|error| host_failure("cannot open the target's PID namespace", error))?,
            _ => None,
        };
        let namespace = namespace.ok_or_else(|| {
            let text = format!("the target container {id} is not running");
            CallFailure::new(FailureKind::WrongState, text)
        })?;
        let link = bundle.join(CreateContainer::PID_NAMESPACE);
        let shim = std::process::id();
        let made = remove(&link)
            .and_then(|()| symlink(format!("/proc/{shim}/fd/{}", namespace.as_raw_fd()), &link));
        made.map_err(|error| host_failure(&format!("cannot create {}", link.display()), error))?;
        Ok(namespace)
    }
}

/// The PID namespace of a process that is not reaped; `None` if it has exited.
fn open_namespace(pid: i32, handle: &OwnedFd) -> io::Result<Option<OwnedFd>> {
    let path = format!("/proc/{pid}/ns/pid");
    let opened = rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty());
    // Checked after opening: if the process still runs, its PID was not reused, and the namespace
    // is its own.
    if has_ended(handle.as_fd())? {
        return Ok(None);
    }
    Ok(Some(opened?))
}

fn has_ended(process: BorrowedFd<'_>) -> io::Result<bool> {
    let mut wait = [PollFd::from_borrowed_fd(process, PollFlags::IN)];
    Ok(poll(&mut wait, Some(&Timespec::default()))? > 0)
}

fn remove(link: &Path) -> io::Result<()> {
    match fs::remove_file(link) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// The namespaces that a container joins: the pod's, and the PID namespace of its target.
pub(super) fn joined<'a>(
    sandbox: &'a Sandbox,
    target: Option<&'a OwnedFd>,
) -> JoinedNamespaces<'a> {
    let pods = sandbox.joined();
    JoinedNamespaces {
        pid: target.map(|target| target.as_fd()).or(pods.pid),
        ..pods
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command};

    use rustix::process::{Pid, PidfdFlags, pidfd_open};

    use super::*;

    fn sleeper() -> (Child, OwnedFd) {
        let child = Command::new("sleep").arg("1000").spawn().unwrap();
        let handle = pidfd_open(Pid::from_child(&child), PidfdFlags::empty()).unwrap();
        (child, handle)
    }

    /// The PID belongs to a running process; the process that had it before has exited.
    #[test]
    fn a_reused_pid_opens_no_namespace() {
        let (mut ended, handle) = sleeper();
        let (mut other, other_handle) = sleeper();
        ended.kill().unwrap();
        ended.wait().unwrap();
        let pid = other.id().cast_signed();
        assert!(open_namespace(pid, &handle).unwrap().is_none());
        assert!(open_namespace(pid, &other_handle).unwrap().is_some());
        other.kill().unwrap();
        other.wait().unwrap();
    }
}
