//! Whether an OOM kill ends all processes of a cgroup.

use std::{
    fs::read_to_string,
    io,
    path::{Path, PathBuf},
};

use rubelet_cgroup_plan::{CgroupLayout, CgroupPath};
use rustix::fs::inotify::WatchFlags;

use super::{CgroupFs, WriteError, write::write_file};
use crate::inotify::Inotify;

/// `memory.oom.group` of a cgroup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OomGroupFile(PathBuf);

impl CgroupFs {
    /// The file of a cgroup; `None` with version 1, which has none.
    #[must_use]
    pub fn oom_group(&self, path: &CgroupPath) -> Option<OomGroupFile> {
        let dir = match self.layout {
            CgroupLayout::V2 => self.controller_dir("memory", path)?,
            CgroupLayout::V1 | CgroupLayout::Hybrid => return None,
        };
        Some(OomGroupFile(dir.join("memory.oom.group")))
    }
}

impl OomGroupFile {
    /// The path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Watches for processes that write to it; returns the descriptor of the watch.
    ///
    /// # Errors
    /// The cgroup is gone, or there are too many watches.
    pub fn watch(&self, changes: &Inotify) -> io::Result<i32> {
        changes.add_watch(&self.0, WatchFlags::MODIFY)
    }

    /// Lets an OOM kill end all processes. False if it did so already.
    ///
    /// # Errors
    /// The cgroup is gone, or the kernel is older than 4.19.
    pub fn enable(&self) -> Result<bool, WriteError> {
        if read_to_string(&self.0).is_ok_and(|text| text.trim() == "1") {
            return Ok(false);
        }
        write_file(&self.0, "1", None).map(|()| true)
    }
}

#[cfg(test)]
mod tests {
    use crate::cgroup::tests::{path, put, temp, v1, v2};

    #[test]
    fn a_group_is_enabled_once_and_only_in_version_2() {
        let root = temp();
        put(root.path(), &[("a/memory.oom.group", "0\n")]);
        let file = v2(root.path()).oom_group(&path("/a")).unwrap();
        assert!(file.enable().unwrap());
        assert!(
            std::fs::read_to_string(file.path())
                .unwrap()
                .starts_with('1')
        );
        put(root.path(), &[("a/memory.oom.group", "1\n")]);
        assert!(!file.enable().unwrap());
        let missing = v2(root.path()).oom_group(&path("/b")).unwrap();
        assert!(missing.enable().is_err());
        let fs = v1(root.path(), &[("memory", "memory")]);
        assert_eq!(fs.oom_group(&path("/a")), None);
    }
}
