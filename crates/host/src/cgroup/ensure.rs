//! Creates cgroups and enables controllers for them.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use rubelet_cgroup_plan::{CgroupLayout, CgroupPath};

use super::{
    CgroupFs, Hierarchy,
    write::{RefusedValues, WriteError, write_file},
};

/// Why a cgroup does not exist, or is incomplete.
#[derive(Debug, thiserror::Error)]
pub enum EnsureError {
    /// A directory can't be created.
    #[error("cannot create the cgroup {}", dir.display())]
    Create {
        /// The directory.
        dir: PathBuf,
        /// The error.
        source: io::Error,
    },
    /// A file of the kernel can't be read.
    #[error("cannot read {}", file.display())]
    Read {
        /// The file.
        file: PathBuf,
        /// The error.
        source: io::Error,
    },
    /// The cgroup exists, but some controllers could not be enabled for it.
    #[error(transparent)]
    Controllers(#[from] RefusedValues),
}

/// Controllers that the agent or its runtimes use on version 2.
const V2_CONTROLLERS: [&str; 6] = ["cpu", "cpuset", "io", "memory", "hugetlb", "pids"];

impl CgroupFs {
    /// Creates the cgroup in every hierarchy, with its missing ancestors. Does nothing if it exists
    /// already.
    ///
    /// # Errors
    /// See [`EnsureError`]; after [`EnsureError::Controllers`] the cgroup can still be used.
    pub fn ensure(&self, path: &CgroupPath) -> Result<(), EnsureError> {
        let mut refused = Vec::new();
        for hierarchy in &self.hierarchies {
            match self.layout {
                CgroupLayout::V2 => ensure_v2(hierarchy, path, &mut refused)?,
                CgroupLayout::V1 | CgroupLayout::Hybrid => ensure_v1(hierarchy, path)?,
            }
        }
        if refused.is_empty() {
            return Ok(());
        }
        Err(EnsureError::Controllers(RefusedValues(refused)))
    }
}

fn ensure_v1(hierarchy: &Hierarchy, path: &CgroupPath) -> Result<(), EnsureError> {
    let mut dir = hierarchy.mount.clone();
    for component in path.components() {
        let parent = dir.clone();
        dir.push(component);
        create(&dir)?;
        if hierarchy.has("memory") {
            count_within(&dir);
        }
        // A new cpuset has neither processors nor memory nodes, and nothing can run in it.
        if hierarchy.has("cpuset") {
            inherit(&parent, &dir, "cpuset.cpus")?;
            inherit(&parent, &dir, "cpuset.mems")?;
        }
    }
    Ok(())
}

/// Kernels before 5.11 can exclude descendant cgroups from a limit.
fn count_within(dir: &Path) {
    let file = dir.join("memory.use_hierarchy");
    // It can't be changed any more once there are child cgroups, and then it is not ours.
    if fs::read_to_string(&file).is_ok_and(|text| text.trim() == "0") {
        let _ = write_file(&file, "1", None);
    }
}

fn inherit(parent: &Path, dir: &Path, file: &str) -> Result<(), EnsureError> {
    if !read(&dir.join(file))?.trim().is_empty() {
        return Ok(());
    }
    let value = read(&parent.join(file))?;
    write_file(&dir.join(file), value.trim(), Some("cpuset"))
        .map_err(|error| EnsureError::Controllers(RefusedValues(vec![error])))
}

fn ensure_v2(
    hierarchy: &Hierarchy,
    path: &CgroupPath,
    refused: &mut Vec<WriteError>,
) -> Result<(), EnsureError> {
    let mut dir = hierarchy.mount.clone();
    for component in path.components() {
        // A controller is available in a cgroup only if every ancestor enables it.
        pass_on(&dir, refused)?;
        dir.push(component);
        create(&dir)?;
    }
    Ok(())
}

fn pass_on(dir: &Path, refused: &mut Vec<WriteError>) -> Result<(), EnsureError> {
    let available = read(&dir.join("cgroup.controllers"))?;
    let file = dir.join("cgroup.subtree_control");
    let enabled = read(&file)?;
    let has = |list: &str, name: &str| list.split_whitespace().any(|word| word == name);
    let missing: Vec<String> = V2_CONTROLLERS
        .iter()
        .filter(|name| has(&available, name) && !has(&enabled, name))
        .map(|name| format!("+{name}"))
        .collect();
    if missing.is_empty() || write_file(&file, &missing.join(" "), None).is_ok() {
        return Ok(());
    }
    // One write enables all or none; a missing controller must not affect the others.
    for name in &missing {
        if let Err(error) = write_file(&file, name, None) {
            refused.push(error);
        }
    }
    Ok(())
}

fn create(dir: &Path) -> Result<(), EnsureError> {
    match fs::create_dir(dir) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(source) => Err(EnsureError::Create {
            dir: dir.to_owned(),
            source,
        }),
    }
}

fn read(file: &Path) -> Result<String, EnsureError> {
    fs::read_to_string(file).map_err(|source| EnsureError::Read {
        file: file.to_owned(),
        source,
    })
}
