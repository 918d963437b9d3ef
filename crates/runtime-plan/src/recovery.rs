//! Recovery at the start: running pods are adopted, pods that exited meanwhile are torn down, and
//! partially created or removed objects are discarded, as are those of no sandbox.
//!
//! The order of the steps makes an interrupted start safe: processes are killed before their
//! records change, and records are removed last. Planning again after any step plans the remaining
//! ones.

mod decision;
mod display;
mod leftovers;
mod plan;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use rubelet_cgroup_plan::CgroupPath;

use crate::record::{ContainerRecord, ExitRecord, SandboxRecord};

pub use plan::plan;

/// The records, and the observed state of the machine.
#[derive(Debug, Clone)]
pub struct RecoveryInput<'a> {
    /// The present boot.
    pub boot_id: &'a str,
    /// Now, in nanoseconds since 1970.
    pub now: i64,
    /// The run directory.
    pub run: &'a Path,
    /// The parent cgroup of the shims' cgroups, each of which is named after its sandbox.
    pub shim_cgroup: &'a CgroupPath,
    /// Records of sandboxes, by identifier.
    pub sandboxes: BTreeMap<&'a str, &'a SandboxRecord>,
    /// Records of containers, by identifier.
    pub containers: BTreeMap<&'a str, &'a ContainerRecord>,
    /// Shims that respond, by sandbox, with their containers by identifier.
    pub shims: BTreeMap<String, BTreeMap<String, SeenContainer>>,
    /// Exits that shims recorded, by container.
    pub exits: BTreeMap<String, ExitRecord>,
    /// Directories of sandboxes below `run`, with the bundles of containers in them.
    pub directories: BTreeMap<String, Vec<String>>,
    /// Mount points below `run`.
    pub mounts: Vec<PathBuf>,
    /// Cgroups directly below `shim_cgroup`, by name.
    pub shim_cgroups: Vec<String>,
    /// Containers that have a root file system prepared.
    pub snapshots: Vec<String>,
}

/// A container as its shim sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SeenContainer {
    /// It is being created, or waits for its start.
    Created {
        /// Its first process.
        pid: i32,
    },
    /// Its program runs.
    Running {
        /// Its first process.
        pid: i32,
        /// Start time, in nanoseconds since 1970.
        started_at: i64,
    },
    /// It has exited.
    Exited(ExitRecord),
}

/// A step of the recovery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecoveryStep {
    /// Keep the connection to the sandbox's shim: the pod continues.
    Adopt {
        /// The sandbox.
        sandbox: String,
    },
    /// Order a shim to kill its containers, release its resources and exit.
    EndShim {
        /// The sandbox it is for.
        sandbox: String,
    },
    /// Order a shim to delete a container.
    DeleteInShim {
        /// The sandbox.
        sandbox: String,
        /// The container.
        container: String,
    },
    /// Kill all processes of a cgroup and remove it. It may not exist.
    KillCgroup(CgroupPath),
    /// Record that the program runs.
    MarkRunning {
        /// The container.
        container: String,
        /// Its first process.
        pid: i32,
        /// Start time, in nanoseconds since 1970.
        started_at: i64,
    },
    /// Record the exit.
    MarkExited {
        /// The container.
        container: String,
        /// The exit.
        exit: ExitRecord,
    },
    /// Record that the sandbox is not ready.
    MarkNotReady {
        /// The sandbox.
        sandbox: String,
    },
    /// Detach the sandbox from the network that its record names.
    FreeNetwork {
        /// The sandbox.
        sandbox: String,
    },
    /// Unmount everything at a mount point.
    Unmount(PathBuf),
    /// Remove a directory and its content. Nothing is mounted in it any more.
    RemoveDirectory(PathBuf),
    /// Remove the root file system of a container.
    RemoveSnapshot {
        /// The container.
        container: String,
    },
    /// Remove the record of a container.
    RemoveContainer {
        /// The container.
        container: String,
    },
    /// Remove the record of a sandbox.
    RemoveSandbox {
        /// The sandbox.
        sandbox: String,
    },
}

/// A step and its reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedStep {
    /// The sandbox; empty if unknown. Steps of different sandboxes run concurrently, those of one
    /// sandbox in order.
    pub sandbox: String,
    /// The step.
    pub step: RecoveryStep,
    /// The reason, for the log.
    pub why: &'static str,
}

/// The steps of a recovery, in order. A failed step does not delay the others.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RecoveryPlan {
    /// The steps.
    pub steps: Vec<PlannedStep>,
    /// Sandboxes that remain ready. Network resources of all others can be released.
    pub ready: BTreeSet<String>,
}
