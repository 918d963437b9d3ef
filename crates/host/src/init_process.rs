//! A pidfd of a container's init process, whose PID the runtime reported.

mod exit;

use std::{fs, io, os::fd::OwnedFd};

pub use exit::exit_code;

use rubelet_cgroup_plan::runtime_cgroup::is_of_container;
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::{Pid, PidfdFlags, Resource, getrlimit, pidfd_open},
};

/// Opens a pidfd of this process, if it belongs to that container. `None` if the process is gone,
/// or belongs to something else: PIDs are reused, and those of another PID namespace mean other
/// processes here.
///
/// # Errors
/// The kernel returns no pidfd, or the cgroups of the process can't be read.
pub fn open(pid: u32, container: &str) -> io::Result<Option<OwnedFd>> {
    let number = i32::try_from(pid).ok().filter(|&pid| pid > 1);
    let Some(number) = number.and_then(Pid::from_raw) else {
        return Ok(None);
    };
    let process = match pidfd_open(number, PidfdFlags::NONBLOCK) {
        Err(rustix::io::Errno::SRCH) => return Ok(None),
        opened => opened?,
    };
    let cgroups = match fs::read_to_string(format!("/proc/{pid}/cgroup")) {
        Err(error) if is_gone(&error) => return Ok(None),
        read => read?,
    };
    // The process existed before the file was read. If it still exists, the file belongs to it.
    let of_container = cgroups.lines().any(|line| names(line, container));
    Ok((of_container && !has_ended(&process)?).then_some(process))
}

/// Maximum number of descriptors of this process.
#[must_use]
pub fn descriptors() -> usize {
    let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    usize::try_from(limit).unwrap_or(usize::MAX)
}

/// True if a cgroup in this line of `/proc/PID/cgroup` belongs to the container. It may contain others.
fn names(line: &str, container: &str) -> bool {
    let mut parts = line.split('/').skip(1);
    parts.any(|part| is_of_container(part, container))
}

fn has_ended(process: &OwnedFd) -> io::Result<bool> {
    let mut polled = [PollFd::new(process, PollFlags::IN)];
    Ok(poll(&mut polled, Some(&Timespec::default()))? > 0)
}

fn is_gone(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(libc::ESRCH)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_cgroup_is_called_after_the_container() {
        for (line, expected) in [
            ("0::/kubepods.slice/pod1/c0ffee", true),
            ("4:memory:/kubepods/pod1/c0ffee", true),
            ("0::/kubepods-pod1.slice/cri-containerd-c0ffee.scope", true),
            ("0::/kubepods-pod1.slice/crio-c0ffee.scope", true),
            ("0::/kubepods-pod1.slice/crio-c0ffee.scope/container", true),
            ("0::/kubepods/pod1/c0ffee/init.scope", true),
            ("4:c0ffee:/kubepods/pod1", false),
            ("4:memory:/kubepods/pod1/crio-c0ffee", true),
            ("0::/kubepods/pod1/xc0ffee", false),
            ("0::/kubepods/pod1/xc0ffee.scope", false),
            ("0::/", false),
            ("", false),
        ] {
            assert_eq!(names(line, "c0ffee"), expected, "{line}");
        }
    }

    #[test]
    fn a_process_of_another_cgroup_is_nobodys() {
        let mut child = Command::new("sleep").arg("1000").spawn().unwrap();
        let cgroups = fs::read_to_string(format!("/proc/{}/cgroup", child.id())).unwrap();
        let own = cgroups.lines().find_map(|line| {
            let last = line.rsplit('/').next()?;
            (!last.is_empty()).then(|| last.to_owned())
        });
        assert!(open(child.id(), "c0ffee").unwrap().is_none());
        let process = own.as_deref().map(|own| open(child.id(), own).unwrap());
        if let Some(process) = &process {
            let process = process.as_ref().expect("its cgroup has this name");
            assert!(!has_ended(process).unwrap());
        }
        child.kill().unwrap();
        if let Some(Some(process)) = &process {
            poll(&mut [PollFd::new(process, PollFlags::IN)], None).unwrap();
            assert!(has_ended(process).unwrap());
        }
        // A zombie has ended, though its number is taken.
        if let Some(own) = &own {
            assert!(open(child.id(), own).unwrap().is_none());
        }
        child.wait().unwrap();
        assert!(open(child.id(), "c0ffee").unwrap().is_none());
        assert!(open(0, "c0ffee").unwrap().is_none());
        assert!(open(u32::MAX, "c0ffee").unwrap().is_none());
    }
}
