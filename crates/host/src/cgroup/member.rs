//! One process of a cgroup, for what is the same in all of them.

use std::{
    fs,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
};

use rubelet_cgroup_plan::CgroupPath;
use rustix::fs::{Mode, OFlags, open};

use super::{CgroupFs, child_dirs};

impl CgroupFs {
    /// The directory in `proc` of one process of the cgroup or its descendants; `None` if there is none. What is
    /// read from the descriptor is never of another process, also when the number is used again.
    #[must_use]
    pub fn process_dir(&self, path: &CgroupPath, proc: &Path) -> Option<OwnedFd> {
        process_in(&self.main_dir(path)?, proc)
    }

    /// Names of the cgroups directly below, in one hierarchy: that of memory, if it is mounted. None if it can't be
    /// read.
    #[must_use]
    pub fn child_names(&self, path: &CgroupPath) -> Vec<String> {
        let dirs = self.main_dir(path).and_then(|dir| child_dirs(&dir).ok());
        let names = dirs.unwrap_or_default().into_iter();
        names
            .filter_map(|dir| Some(dir.file_name()?.to_str()?.to_owned()))
            .collect()
    }

    fn main_dir(&self, path: &CgroupPath) -> Option<PathBuf> {
        let any = || Some(self.hierarchies.first()?.dir(path));
        self.controller_dir("memory", path).or_else(any)
    }
}

fn process_in(dir: &Path, proc: &Path) -> Option<OwnedFd> {
    if let Some(pid) = processes(dir).first() {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let found = open(proc.join(pid), flags, Mode::empty()).ok();
        // The process was in the cgroup before the directory was opened, and one of that number is after it.
        return found.filter(|_| processes(dir).contains(pid));
    }
    let children = child_dirs(dir).unwrap_or_default();
    children.iter().find_map(|child| process_in(child, proc))
}

/// Numbers of the processes that this PID namespace sees.
fn processes(dir: &Path) -> Vec<String> {
    let text = fs::read_to_string(dir.join("cgroup.procs")).unwrap_or_default();
    let visible = text.lines().filter(|line| *line != "0");
    visible.map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use rustix::fs::readlinkat;

    use crate::cgroup::tests::{path, put, temp, v1};

    #[test]
    fn a_process_is_found_in_the_cgroup_or_below() {
        let root = temp();
        put(
            root.path(),
            &[
                ("cpu/pod/a/cgroup.procs", "12\n"),
                ("memory/pod/cgroup.procs", ""),
                ("memory/pod/a/cgroup.procs", "0\n"),
                ("memory/pod/a/nested/cgroup.procs", "7\n8\n"),
                ("memory/pod/b/cgroup.procs", "9\n"),
                ("proc/7/name", "seven"),
            ],
        );
        let fs = v1(root.path(), &[("cpu", "cpu"), ("memory", "memory")]);
        let proc = root.path().join("proc");
        std::os::unix::fs::symlink("x", proc.join("7/exe")).unwrap();
        let found = fs.process_dir(&path("/pod/a"), &proc).unwrap();
        let link = readlinkat(&found, "exe", Vec::new()).unwrap();
        assert_eq!(link.as_bytes(), b"x");
        assert!(
            fs.process_dir(&path("/pod/b"), &proc).is_none(),
            "it has ended"
        );
        assert!(fs.process_dir(&path("/pod/c"), &proc).is_none());
        let mut names = fs.child_names(&path("/pod"));
        names.sort();
        assert_eq!(names, ["a", "b"]);
        assert!(fs.child_names(&path("/pod/c")).is_empty());
    }
}
