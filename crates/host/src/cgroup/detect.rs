//! Detection of the mounted cgroup hierarchies.

use std::{
    io,
    path::{Path, PathBuf},
};

use rubelet_cgroup_plan::CgroupLayout;

use super::{CgroupFs, Hierarchy};
use crate::mountinfo::{self, MountEntry, MountinfoError};

/// Why the hierarchies can't be detected.
#[derive(Debug, thiserror::Error)]
pub enum DetectError {
    /// The directory can't be inspected.
    #[error("cannot look at {}", root.display())]
    Stat {
        /// The directory.
        root: PathBuf,
        /// The error.
        source: io::Error,
    },
    /// The list of mounts can't be read.
    #[error(transparent)]
    Mountinfo(#[from] MountinfoError),
    /// No controller is mounted.
    #[error("no cgroup hierarchy is mounted at or below {}: mount cgroup2 there", root.display())]
    NotMounted {
        /// The directory.
        root: PathBuf,
    },
}

impl CgroupFs {
    /// Inspects the mounts at and below `root`, which is `/sys/fs/cgroup` on every machine.
    ///
    /// # Errors
    /// See [`DetectError`].
    pub fn detect(root: &Path) -> Result<Self, DetectError> {
        let stat = rustix::fs::statfs(root).map_err(|error| DetectError::Stat {
            root: root.to_owned(),
            source: error.into(),
        })?;
        let unified = stat.f_type == rustix::fs::FsWord::from(CGROUP2_SUPER_MAGIC);
        Self::from_mounts(root, unified, &mountinfo::read()?)
    }

    /// Like [`Self::detect`], from given facts: whether `root` itself is of the type cgroup2, and
    /// the mount table.
    ///
    /// # Errors
    /// No hierarchy with controllers is mounted.
    pub fn from_mounts(
        root: &Path,
        unified: bool,
        mounts: &[MountEntry],
    ) -> Result<Self, DetectError> {
        if unified {
            let hierarchy = Hierarchy {
                mount: root.to_owned(),
                controllers: Vec::new(),
            };
            return Ok(Self {
                layout: CgroupLayout::V2,
                hierarchies: vec![hierarchy],
            });
        }
        let below = || {
            mounts
                .iter()
                .filter(|entry| entry.mount_point.starts_with(root))
        };
        let mut hierarchies: Vec<Hierarchy> = Vec::new();
        for entry in below().filter(|entry| entry.fs_type == "cgroup") {
            let hierarchy = Hierarchy {
                mount: entry.mount_point.clone(),
                controllers: v1_controllers(&entry.super_options),
            };
            let twin = hierarchies
                .iter_mut()
                .find(|own| own.controllers == hierarchy.controllers);
            match twin {
                // Mounted twice: the shortest path is the one that other programs use, too.
                Some(own) if length(&hierarchy.mount) < length(&own.mount) => *own = hierarchy,
                Some(_) => {}
                None => hierarchies.push(hierarchy),
            }
        }
        if hierarchies
            .iter()
            .all(|hierarchy| hierarchy.controllers.is_empty())
        {
            return Err(DetectError::NotMounted {
                root: root.to_owned(),
            });
        }
        let beside = below().find(|entry| entry.fs_type == "cgroup2");
        let mut layout = CgroupLayout::V1;
        if let Some(entry) = beside {
            layout = CgroupLayout::Hybrid;
            // Runtimes create the cgroups of containers here, too; without this one the directories
            // of pods would remain.
            let mount = entry.mount_point.clone();
            hierarchies.push(Hierarchy {
                mount,
                controllers: Vec::new(),
            });
        }
        Ok(Self {
            layout,
            hierarchies,
        })
    }
}

/// From the kernel's `magic.h`.
const CGROUP2_SUPER_MAGIC: u32 = 0x6367_7270;

fn length(path: &Path) -> usize {
    path.as_os_str().len()
}

/// Controllers among the mount options of a version 1 hierarchy.
fn v1_controllers(options: &str) -> Vec<String> {
    const OTHER: [&str; 6] = ["rw", "ro", "xattr", "noprefix", "clone_children", "none"];
    options
        .split(',')
        .filter(|option| !option.is_empty() && !OTHER.contains(option))
        .filter(|option| !option.starts_with("release_agent="))
        .filter(|option| !option.starts_with("cpuset_v2_mode"))
        .map(str::to_owned)
        .collect()
}
