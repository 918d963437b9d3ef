//! A process of a cgroup, and the cgroup of a process.

use std::{
    fs,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
};

use rubelet_cgroup_plan::{CgroupLayout, CgroupPath};
use rustix::fs::{Mode, OFlags, open};

use super::{CgroupFs, child_dirs, names_of, own_processes};

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
        names_of(&dirs.unwrap_or_default()).collect()
    }

    /// The cgroup that the process is in; `None` for the root, if processors and memory have different ones, outside
    /// of this cgroup namespace, and if the process has ended.
    #[must_use]
    pub fn of_process(&self, pid: i32) -> Option<CgroupPath> {
        let text = fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?;
        self.named_in(&text)
    }

    /// Reads lines such as `4:cpu,cpuacct:/a`, and `0::/a` of version 2.
    fn named_in(&self, text: &str) -> Option<CgroupPath> {
        let of = |controller: &str| {
            let has = |controllers: &str| match self.layout {
                CgroupLayout::V2 => controllers.is_empty(),
                CgroupLayout::V1 | CgroupLayout::Hybrid => {
                    controllers.split(',').any(|own| own == controller)
                }
            };
            text.lines().find_map(|line| {
                let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
                has(controllers).then_some(path)
            })
        };
        let path = of("memory").filter(|path| of("cpuacct") == Some(path))?;
        CgroupPath::parse(path).ok()
    }

    fn main_dir(&self, path: &CgroupPath) -> Option<PathBuf> {
        let any = || Some(self.hierarchies.first()?.dir(path));
        self.controller_dir("memory", path).or_else(any)
    }
}

fn process_in(dir: &Path, proc: &Path) -> Option<OwnedFd> {
    let own = || own_processes(dir).unwrap_or_default();
    if let Some(pid) = own().first() {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let found = open(proc.join(pid.to_string()), flags, Mode::empty()).ok();
        // The process was in the cgroup before the directory was opened, and one of that number is after it.
        return found.filter(|_| own().contains(pid));
    }
    let children = child_dirs(dir).unwrap_or_default();
    children.iter().find_map(|child| process_in(child, proc))
}

#[cfg(test)]
mod tests {
    use rustix::fs::readlinkat;

    use crate::cgroup::tests::{path, put, temp, v1, v2};

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

    #[test]
    fn a_cgroup_that_lists_no_processes_hides_no_others() {
        let root = temp();
        put(
            root.path(),
            &[
                ("cpu/pod/cgroup.procs", "1\n"),
                // As unreadable as the list of a threaded cgroup.
                ("cpu/pod/a/cgroup.procs/file", ""),
                ("cpu/pod/a/nested/cgroup.procs", "2\n"),
                ("cpu/pod/b/cgroup.procs", "3\n0\n"),
                ("memory/pod/b/cgroup.procs", "4\n"),
            ],
        );
        let fs = v1(root.path(), &[("cpu", "cpu"), ("memory", "memory")]);
        let found = fs.readable_processes(&path("/pod"));
        assert_eq!(found, [1, 2, 3, 4].into());
        assert!(fs.processes(&path("/pod")).is_err());
        assert_eq!(fs.processes(&path("/pod/b")).unwrap(), [3, 4].into());
    }

    #[test]
    fn the_cgroup_of_a_process_is_that_of_processors_and_memory() {
        let root = temp();
        let fs = v1(root.path(), &[("memory", "memory")]);
        let named = |text: &str| fs.named_in(text).map(|path| path.as_str().to_owned());
        let both = "5:name=systemd:/x\n4:cpu,cpuacct:/a/b:c\n3:memory:/a/b:c\n0::/\n";
        assert_eq!(named(both).as_deref(), Some("/a/b:c"));
        for other in [
            "4:cpu,cpuacct:/a\n3:memory:/b\n",
            "4:cpu,cpuacct:/\n3:memory:/\n",
            "4:cpu,cpuacct:/../a\n3:memory:/../a\n",
            "3:memory:/a\n",
            "x",
            "",
        ] {
            assert_eq!(named(other), None, "{other}");
        }
        let fs = v2(root.path());
        let found = fs.named_in("0::/system.slice/a.service\n").unwrap();
        assert_eq!(found.as_str(), "/system.slice/a.service");
    }
}
