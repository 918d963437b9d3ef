//! OOM kills in a cgroup.

use std::{fs, io, path::Path};

use rubelet_cgroup_plan::{CgroupLayout, CgroupPath};

use super::{CgroupFs, child_dirs, is_gone, stats::StatsError};

impl CgroupFs {
    /// Processes of the cgroup and its descendants that the OOM killer has killed since its
    /// creation. Zero if the kernel does not count them (version 1 before Linux 4.13).
    ///
    /// # Errors
    /// The cgroup does not exist, or has no memory controller.
    pub fn oom_kills(&self, path: &CgroupPath) -> Result<u64, StatsError> {
        let dir = self.controller_dir("memory", path);
        let dir = dir.ok_or_else(|| StatsError::NoController {
            path: path.clone(),
            controller: "memory",
        })?;
        let counted = match self.layout {
            CgroupLayout::V2 => kills(&dir.join("memory.events")),
            CgroupLayout::V1 | CgroupLayout::Hybrid => {
                let own = kills(&dir.join("memory.oom_control"));
                own.and_then(|own| Ok(own + kills_within(&dir)?))
            }
        };
        counted.map_err(|source| StatsError::Read { file: dir, source })
    }
}

/// Version 1 counts a kill only in the cgroup of the victim.
fn kills_within(dir: &Path) -> io::Result<u64> {
    let mut sum = 0;
    for child in child_dirs(dir)? {
        match kills(&child.join("memory.oom_control")) {
            Ok(own) => sum += own + kills_within(&child)?,
            Err(error) if is_gone(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(sum)
}

fn kills(file: &Path) -> io::Result<u64> {
    let text = fs::read_to_string(file)?;
    let line = text.lines().find_map(|line| line.strip_prefix("oom_kill "));
    Ok(line
        .and_then(|number| number.trim().parse().ok())
        .unwrap_or(0))
}
