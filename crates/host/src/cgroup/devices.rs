//! The devices that the processes of a cgroup may use. Version 1 has files for it; on version 2 it
//! is a program that the kernel runs at each access. A container without its rules in force could
//! create and open the machine's disks, so errors are never ignored here.

mod attach;
mod policy;
mod program;

use std::{
    io,
    path::{Path, PathBuf},
};

use rubelet_cgroup_plan::{CgroupLayout, CgroupPath};
use rubelet_oci::DeviceRule;

use self::policy::Policy;
use super::{
    CgroupFs,
    write::{WriteError, write_file},
};

pub use policy::RuleError;

/// Why device rules are not in force. The container must not be started then.
#[derive(Debug, thiserror::Error)]
pub enum DevicesError {
    /// A rule is invalid, or can't be expressed.
    #[error(transparent)]
    Rule(#[from] RuleError),
    /// Version 1 rejected a line.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// No mounted hierarchy can enforce the rules.
    #[error(
        "cannot restrict the devices of the cgroup {0}: neither the cgroup controller `devices` nor \
         cgroup2 is mounted"
    )]
    NoController(CgroupPath),
    /// The cgroup can't be opened.
    #[error("cannot open the cgroup {}", dir.display())]
    Open {
        /// Its directory.
        dir: PathBuf,
        /// The error.
        source: io::Error,
    },
    /// The kernel rejected the program of version 2.
    #[error(
        "cannot load the program that restricts devices (needs CAP_BPF, and CONFIG_CGROUP_BPF in \
         the kernel)"
    )]
    Load(#[source] io::Error),
    /// The kernel refused to attach the program.
    #[error("cannot attach the program that restricts devices to the cgroup {}", dir.display())]
    Attach {
        /// Directory of the cgroup.
        dir: PathBuf,
        /// The error.
        source: io::Error,
    },
}

impl CgroupFs {
    /// Applies the rules, instead of those of an earlier call: in order, from a state in which
    /// everything is denied; the last rule that matches an access decides. What ancestor cgroups
    /// deny stays denied.
    ///
    /// # Errors
    /// See [`DevicesError`]; no container may run in the cgroup then.
    pub fn apply_devices(
        &self,
        path: &CgroupPath,
        rules: &[DeviceRule],
    ) -> Result<(), DevicesError> {
        let policy = Policy::from_rules(rules)?;
        let v1 = match self.layout {
            CgroupLayout::V2 => None,
            CgroupLayout::V1 | CgroupLayout::Hybrid => self.controller_dir("devices", path),
        };
        if let Some(dir) = v1 {
            return Ok(write_v1(&dir, &policy)?);
        }
        // Without the controller of version 1, the unified hierarchy can enforce them, too.
        let unified = self
            .hierarchies
            .iter()
            .find(|one| one.controllers.is_empty());
        let unified = unified.ok_or_else(|| DevicesError::NoController(path.clone()))?;
        attach::attach(&unified.dir(path), &program::program(&policy))
    }
}

fn write_v1(dir: &Path, policy: &Policy) -> Result<(), WriteError> {
    let allow = dir.join("devices.allow");
    let deny = dir.join("devices.deny");
    let (default, exception) = if policy.allows_by_default() {
        (allow, deny)
    } else {
        (deny, allow)
    };
    // Also removes all exceptions that are in force.
    write_file(&default, "a", None)?;
    for line in policy.exceptions() {
        write_file(&exception, &line.to_string(), None)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
