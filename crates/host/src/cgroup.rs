//! The cgroup file system: which hierarchies there are, and the cgroups in them. A cgroup is named
//! by a [`CgroupPath`], which can't be the root; values come as [`CgroupValues`].
//!
//! [`CgroupPath`]: rubelet_cgroup_plan::CgroupPath
//! [`CgroupValues`]: rubelet_cgroup_plan::CgroupValues

mod apply;
mod detect;
mod devices;
mod ensure;
mod freeze;
mod kill;
mod member;
mod memory_level;
mod oom;
mod oom_group;
mod pause;
mod remove;
mod root;
mod stats;
mod target;
mod write;

use std::{
    collections::BTreeSet,
    fs, io,
    path::{Path, PathBuf},
};

use rubelet_cgroup_plan::{CgroupLayout, CgroupPath};

pub(crate) use apply::cpu_weight;
pub use detect::DetectError;
pub use devices::{DevicesError, RuleError};
pub use ensure::EnsureError;
pub use freeze::FreezeError;
pub use kill::KillError;
pub use memory_level::MemoryLevel;
pub use oom_group::OomGroupFile;
pub use remove::{CgroupRemoval, RemoveError};
pub use root::RootProcessesError;
pub use stats::{
    CgroupStats, CpuStats, HugetlbStats, IoStats, MemoryStats, PidsStats, Pressure, PressureLine,
    PsiStats, StatsError, StatsReader, StatsScope, SwapStats,
};
pub use target::{CgroupTarget, CreateError, TargetError};
pub use write::{RefusedValues, WriteError};

/// The cgroup file systems of the machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CgroupFs {
    layout: CgroupLayout,
    hierarchies: Vec<Hierarchy>,
}

/// One mounted hierarchy.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Hierarchy {
    mount: PathBuf,
    /// Controllers of version 1, `name=systemd` among them; empty for the unified hierarchy.
    controllers: Vec<String>,
}

impl Hierarchy {
    fn has(&self, controller: &str) -> bool {
        self.controllers.iter().any(|own| own == controller)
    }

    fn dir(&self, path: &CgroupPath) -> PathBuf {
        self.mount.join(path.relative())
    }
}

/// Why the cgroups below another can't be listed.
#[derive(Debug, thiserror::Error)]
#[error("cannot list the cgroups in {}", dir.display())]
pub struct ListError {
    dir: PathBuf,
    source: io::Error,
}

impl CgroupFs {
    /// The layout of the hierarchies.
    #[must_use]
    pub fn layout(&self) -> CgroupLayout {
        self.layout
    }

    /// Whether the cgroup exists in every hierarchy.
    #[must_use]
    pub fn exists(&self, path: &CgroupPath) -> bool {
        self.hierarchies
            .iter()
            .all(|hierarchy| hierarchy.dir(path).is_dir())
    }

    /// Whether the cgroup exists in some hierarchy.
    #[must_use]
    pub fn exists_somewhere(&self, path: &CgroupPath) -> bool {
        self.hierarchies
            .iter()
            .any(|hierarchy| hierarchy.dir(path).is_dir())
    }

    /// Whether the kernel has a controller and it is mounted.
    #[must_use]
    pub fn has_controller(&self, controller: &str) -> bool {
        self.hierarchies.iter().any(|hierarchy| match self.layout {
            CgroupLayout::V2 => {
                let text = fs::read_to_string(hierarchy.mount.join("cgroup.controllers"));
                text.is_ok_and(|text| text.split_whitespace().any(|own| own == controller))
            }
            CgroupLayout::V1 | CgroupLayout::Hybrid => hierarchy.has(controller),
        })
    }

    /// The first directory of a cgroup that does not exist although one of these controllers needs
    /// it. Without controllers, the cgroup must exist somewhere.
    #[must_use]
    pub fn missing(&self, path: &CgroupPath, controllers: &[&str]) -> Option<PathBuf> {
        if controllers.is_empty() {
            let first = self.hierarchies.first()?.dir(path);
            return (!self.exists_somewhere(path)).then_some(first);
        }
        let mut dirs = controllers
            .iter()
            .filter_map(|controller| self.controller_dir(controller, path));
        dirs.find(|dir| !dir.is_dir())
    }

    /// Names of the cgroups directly below one, in any hierarchy; empty if it does not exist.
    ///
    /// # Errors
    /// A directory exists and can't be read.
    pub fn children(&self, path: &CgroupPath) -> Result<BTreeSet<String>, ListError> {
        let mut names = BTreeSet::new();
        for hierarchy in &self.hierarchies {
            let dir = hierarchy.dir(path);
            let children = child_dirs(&dir).map_err(|source| ListError { dir, source })?;
            names.extend(names_of(&children));
        }
        Ok(names)
    }

    /// Whether the kernel can limit the swap space of cgroups. The root has no file that shows it,
    /// so an existing cgroup must be given.
    #[must_use]
    pub fn limits_swap(&self, path: &CgroupPath) -> bool {
        let file = match self.layout {
            CgroupLayout::V2 => "memory.swap.max",
            CgroupLayout::V1 | CgroupLayout::Hybrid => "memory.memsw.limit_in_bytes",
        };
        self.controller_dir("memory", path)
            .is_some_and(|dir| dir.join(file).exists())
    }

    /// The directory with the files of a controller; `None` if version 1 has not mounted it.
    fn controller_dir(&self, controller: &str, path: &CgroupPath) -> Option<PathBuf> {
        let index = self.hierarchy(controller)?;
        Some(self.hierarchies[index].dir(path))
    }

    /// The index of the hierarchy with a controller; `None` if version 1 has not mounted it.
    fn hierarchy(&self, controller: &str) -> Option<usize> {
        let mut all = self.hierarchies.iter();
        all.position(|hierarchy| match self.layout {
            CgroupLayout::V2 => true,
            CgroupLayout::V1 | CgroupLayout::Hybrid => hierarchy.has(controller),
        })
    }
}

/// The processes in a cgroup itself that this PID namespace sees: the kernel reports others as 0. None if it does not
/// exist.
fn own_processes(dir: &Path) -> io::Result<Vec<i32>> {
    let text = match fs::read_to_string(dir.join("cgroup.procs")) {
        Err(error) if is_gone(&error) => return Ok(Vec::new()),
        read => read?,
    };
    let numbers = text.lines().filter_map(|line| line.parse().ok());
    Ok(numbers.filter(|pid| *pid != 0).collect())
}

/// The last components of directories.
fn names_of(dirs: &[PathBuf]) -> impl Iterator<Item = String> {
    dirs.iter()
        .filter_map(|dir| Some(dir.file_name()?.to_str()?.to_owned()))
}

/// Directories directly below a directory; none if it does not exist.
fn child_dirs(dir: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if is_gone(&error) => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut dirs = Vec::new();
    for entry in entries {
        match entry.and_then(|entry| Ok((entry.file_type()?, entry))) {
            Ok((kind, entry)) if kind.is_dir() => dirs.push(entry.path()),
            Ok(_) => {}
            Err(error) if is_gone(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(dirs)
}

/// The kernel returns ENODEV for files of a cgroup that was removed after they were opened.
fn is_gone(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOENT | libc::ENODEV))
}

#[cfg(test)]
mod tests;
