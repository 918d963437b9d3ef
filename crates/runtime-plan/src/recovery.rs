//! What a start does with what earlier runs left: running pods are adopted, what exited unobserved
//! is torn down, what was half made or half removed is discarded, and so is what belongs to no
//! sandbox.
//!
//! The steps are in an order in which a start that dies in the middle leaves nothing worse: kills
//! before the records of them, records last. Planning again after any of them plans the
//! rest.

mod decision;
mod leftovers;
mod plan;
#[cfg(test)]
mod tests;
mod words;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use rubelet_base::cgroup::CgroupPath;

use crate::record::{ContainerRecord, ExitRecord, SandboxRecord};

pub use plan::plan;

/// Everything that is there.
#[derive(Debug, Clone)]
pub struct RecoveryInput<'a> {
    /// The present boot.
    pub boot_id: &'a str,
    /// Now, in nanoseconds since 1970.
    pub now: i64,
    /// The directory of running things.
    pub run: &'a Path,
    /// The cgroup below which shims are, each in one that is named after its
    /// sandbox.
    pub shim_cgroup: &'a CgroupPath,
    /// Records of sandboxes, by identifier.
    pub sandboxes: BTreeMap<&'a str, &'a SandboxRecord>,
    /// Records of containers, by identifier.
    pub containers: BTreeMap<&'a str, &'a ContainerRecord>,
    /// Supervisors that answer, by sandbox, with their containers by identifier.
    pub shims: BTreeMap<String, BTreeMap<String, SeenContainer>>,
    /// Ends that shims wrote down, by container.
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
    /// It is being made, or waits for its start.
    Created {
        /// Its first process.
        pid: i32,
    },
    /// Its program runs.
    Running {
        /// Its first process.
        pid: i32,
        /// Since when, in nanoseconds since 1970.
        started_at: i64,
    },
    /// It ended.
    Exited(ExitRecord),
}

/// Something to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Keep the connection to the sandbox's shim: the pod continues.
    Adopt {
        /// The sandbox.
        sandbox: String,
    },
    /// Order a shim to exit, with all that it holds.
    EndShim {
        /// The sandbox it is for.
        sandbox: String,
    },
    /// Order a shim to kill and forget a container.
    DeleteInShim {
        /// The sandbox.
        sandbox: String,
        /// The container.
        container: String,
    },
    /// Kill all processes of a cgroup and remove it. It may be gone already.
    KillCgroup(CgroupPath),
    /// Note in the record that the program runs.
    MarkRunning {
        /// The container.
        container: String,
        /// Its first process.
        pid: i32,
        /// Since when.
        started_at: i64,
    },
    /// Note in the record how it ended.
    MarkExited {
        /// The container.
        container: String,
        /// How.
        exit: ExitRecord,
    },
    /// Note in the record that the sandbox is not ready.
    MarkNotReady {
        /// The sandbox.
        sandbox: String,
    },
    /// Detach the sandbox from the network to which its record says it was attached.
    FreeNetwork {
        /// The sandbox.
        sandbox: String,
    },
    /// Unmount what is there, as often as something is.
    Unmount(PathBuf),
    /// Remove a directory with all that is in it. Nothing is mounted there any more.
    RemoveDirectory(PathBuf),
    /// Give back the root file system of a container.
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

/// A step and why it is taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Planned {
    /// Whose sandbox it is about; empty where nobody knows. Steps of different sandboxes don't wait
    /// for each other; those of one are taken in their order.
    pub sandbox: String,
    /// What to do.
    pub step: Step,
    /// Why, for people to read.
    pub why: &'static str,
}

/// What to do, in order. A step that fails does not hold up the others.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Recovery {
    /// The steps.
    pub steps: Vec<Planned>,
    /// Sandboxes that stay ready: what the network holds for others can go.
    pub ready: BTreeSet<String>,
}
