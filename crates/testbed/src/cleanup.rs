//! Removes everything of one instance, and reports what is left of it.
//!
//! Resources are found by the instance's name only, never by a program's name.

pub mod cgroups;
pub mod iptables;
pub mod kept_logs;
pub mod mounts;
pub mod network;
pub(crate) mod nft;
pub mod processes;
pub(crate) mod shared_files;

use std::collections::BTreeSet;

use anyhow::{Result, bail};

use crate::absent;
use crate::scratch::lock::HostLock;
use crate::scratch::{Scratch, all, in_memory};

/// Removes the instance: its processes first, so that nothing new is started, its directory last,
/// so that an interrupted clean-up is found and finished by the next [`crate::sweep()`].
///
/// Every part is tried even when an earlier one failed.
///
/// # Errors
/// Everything that could not be removed, one line each.
pub fn remove(scratch: &Scratch, _lock: &HostLock) -> Result<()> {
    let mut failed = Vec::new();
    let mut attempt = |what: &str, result: Result<()>| {
        if let Err(error) = result {
            failed.push(format!("{what}: {error:#}"));
        }
    };
    let sockets = shared_files::shim_sockets(scratch.dir());
    attempt("processes", processes::kill_all(scratch));
    attempt("logs", kept_logs::keep(scratch));
    attempt("mounts", mounts::unmount_below(scratch.dir()));
    attempt("cgroups", cgroups::remove(scratch.tag()));
    attempt("network", network::remove(scratch));
    attempt("firewall tables", nft::remove(&scratch.bridge()));
    attempt(
        "NAT rules",
        iptables::remove_rules_of(&scratch.network_name()),
    );
    attempt(
        "shared files",
        shared_files::remove(&sockets, scratch.dir()),
    );
    let is_last = all()?.iter().all(|other| other.tag() == scratch.tag());
    if let Some(before) = scratch.host_before().filter(|_| is_last) {
        attempt("host settings", before.restore());
    }
    attempt("directory", remove_directory(scratch));
    if failed.is_empty() {
        return Ok(());
    }
    bail!(
        "{} is not cleaned up completely:\n  {}",
        scratch.tag(),
        failed.join("\n  ")
    )
}

fn remove_directory(scratch: &Scratch) -> Result<()> {
    in_memory::tear_down(scratch.dir())?;
    Ok(absent::is_fine(std::fs::remove_dir_all(scratch.dir()))?)
}

/// Remaining resources of the instance on this machine, one line each; empty after a successful
/// clean-up.
///
/// # Errors
/// The machine can't be inspected.
pub fn leftovers(scratch: &Scratch) -> Result<Vec<String>> {
    let mut found = BTreeSet::new();
    for pid in processes::of(scratch) {
        found.insert(format!("process {pid}"));
    }
    for mount in mounts::below(scratch.dir())? {
        found.insert(format!("mount {}", mount.display()));
    }
    for cgroup in cgroups::of(scratch.tag())? {
        found.insert(format!("cgroup {}", cgroup.display()));
    }
    for link in network::links_of(scratch) {
        found.insert(format!("network interface {link}"));
    }
    for (family, name) in nft::tables()? {
        if name == scratch.bridge() {
            found.insert(format!("firewall table {family} {name}"));
        }
    }
    for rule in nft::forward_rules()? {
        if rule.bridge == scratch.bridge() {
            found.insert(format!("firewall rule in {} filter FORWARD", rule.family));
        }
    }
    for rule in iptables::rules_of(&scratch.network_name())? {
        found.insert(format!("NAT rule {rule}"));
    }
    for file in shared_files::of(scratch.dir()) {
        found.insert(format!("file {}", file.display()));
    }
    if scratch.dir().exists() {
        found.insert(format!("directory {}", scratch.dir().display()));
    }
    Ok(found.into_iter().collect())
}
