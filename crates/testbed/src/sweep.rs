//! Removes leftovers of killed runs.

use anyhow::{Result, bail};

use crate::cleanup::{self, cgroups, network, nft};
use crate::scratch::lock::HostLock;
use crate::scratch::{Scratch, all};

/// Removes every instance whose owner has died, with its processes, mounts, cgroups and network,
/// and bridges and cgroups without an instance. Instances of living owners are not touched. Returns
/// the names of the removed instances.
///
/// # Errors
/// What could not be removed.
pub fn sweep() -> Result<Vec<String>> {
    let lock = HostLock::take()?;
    sweep_locked(&lock, |scratch| !scratch.owner_is_alive())
}

/// Removes every instance of this process, for a program that must exit early.
///
/// # Errors
/// What could not be removed.
pub fn sweep_own() -> Result<Vec<String>> {
    let lock = HostLock::take()?;
    sweep_locked(&lock, Scratch::is_own)
}

fn sweep_locked(lock: &HostLock, matching: impl Fn(&Scratch) -> bool) -> Result<Vec<String>> {
    let mut removed = Vec::new();
    let mut failed = Vec::new();
    for scratch in all()?.into_iter().filter(matching) {
        match cleanup::remove(&scratch, lock) {
            Ok(()) => removed.push(scratch.tag().to_owned()),
            Err(error) => failed.push(format!("{error:#}")),
        }
    }
    let living = all()?;
    for bridge in network::bridges() {
        if living.iter().all(|scratch| scratch.bridge() != bridge)
            && let Err(error) = network::remove_bridge(&bridge)
        {
            failed.push(format!("bridge {bridge}: {error:#}"));
        }
    }
    let tables = nft::tables().unwrap_or_default().into_iter();
    let rules = nft::forward_rules().unwrap_or_default().into_iter();
    let of_bridges = tables.map(|(_, table)| table);
    for bridge in of_bridges.chain(rules.map(|rule| rule.bridge)) {
        if living.iter().all(|scratch| scratch.bridge() != bridge)
            && let Err(error) = nft::remove(&bridge)
        {
            failed.push(format!("firewall rules of {bridge}: {error:#}"));
        }
    }
    for tag in cgroups::tags()? {
        // A cgroup without a directory: the directory was removed by hand.
        if living.iter().all(|scratch| scratch.tag() != tag)
            && let Err(error) = cleanup::remove(&Scratch::lost(&tag), lock)
        {
            failed.push(format!("{error:#}"));
        }
    }
    if failed.is_empty() {
        return Ok(removed);
    }
    bail!("{}", failed.join("\n"))
}
