//! Reads the network of a pod through one of its processes, as cAdvisor does.

use std::{
    ffi::CString,
    fs::File,
    io::Read,
    os::fd::{AsFd, OwnedFd},
    path::{Path, PathBuf},
};

use jiff::Timestamp;
use rubelet_cgroup_plan::CgroupPath;
use rubelet_host::CgroupFs;
use rustix::fs::{Mode, OFlags, openat, readlinkat};

use crate::{interfaces, sample::NetworkSample};

/// Bytes of a table that are read: a pod may create any number of interfaces.
const MOST_BYTES: u64 = 64 << 10;
/// Bytes that most tables fit into.
const USUAL_BYTES: usize = 4096;

/// What the networks of pods are read from.
pub(crate) struct NetworkReader<'a> {
    fs: &'a CgroupFs,
    proc: PathBuf,
    /// The network namespace of the node.
    own: Option<CString>,
}

impl<'a> NetworkReader<'a> {
    pub(crate) fn new(fs: &'a CgroupFs, machine: &Path) -> Self {
        let proc = machine.join("proc");
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let own = rustix::fs::open(proc.join("self"), flags, Mode::empty());
        Self {
            fs,
            proc,
            own: own.ok().and_then(|process| namespace(&process)),
        }
    }

    /// The directory of a process of the cgroup; `None` if there is none, or if its network is the node's: where a pod is a
    /// virtual machine, for example, its processes are those of the machine.
    pub(crate) fn process(&self, cgroup: &CgroupPath) -> Option<OwnedFd> {
        let process = self.fs.process_dir(cgroup, &self.proc)?;
        (self.own.is_some() && namespace(&process) != self.own).then_some(process)
    }

    /// The network that a process has; `None` if it has ended.
    pub(crate) fn read(&self, process: &OwnedFd, at: Timestamp) -> Option<NetworkSample> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let table = openat(process, "net/dev", flags, Mode::empty()).ok()?;
        // A usual table is read at once.
        let mut text = String::with_capacity(USUAL_BYTES);
        let mut table = File::from(table).take(MOST_BYTES);
        table.read_to_string(&mut text).ok()?;
        interfaces::of_pod(&text, at)
    }
}

fn namespace(process: &OwnedFd) -> Option<CString> {
    readlinkat(process.as_fd(), "ns/net", Vec::new()).ok()
}
