//! Simulates a power loss.

use std::path::PathBuf;

use anyhow::{Context, Result};

use super::Embedded;
use crate::cleanup::{cgroups, mounts, network, nft, processes};

/// The kernel's boot ID.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

impl Embedded {
    /// Puts the machine into the state after a power loss: no process, mount, cgroup or network
    /// interface is left, and the run directory is empty. Returns a file with the next boot ID.
    ///
    /// # Errors
    /// Something can't be removed.
    pub fn lose_power(&self) -> Result<PathBuf> {
        processes::kill_all(&self.scratch)?;
        mounts::unmount_below(self.scratch.dir())?;
        network::remove(&self.scratch)?;
        nft::remove(&self.scratch.bridge())?;
        cgroups::remove(self.scratch.tag())?;
        cgroups::create(self.scratch.tag())?;
        let run = self.run_dir();
        std::fs::remove_dir_all(&run)
            .with_context(|| format!("cannot remove {}", run.display()))?;
        std::fs::create_dir(&run)?;
        let boot_id = self.scratch.dir().join("boot_id");
        std::fs::write(&boot_id, other_boot_id()?)?;
        Ok(boot_id)
    }
}

/// This boot's ID with its digits reversed.
fn other_boot_id() -> Result<String> {
    let id = std::fs::read_to_string(BOOT_ID).with_context(|| format!("cannot read {BOOT_ID}"))?;
    let mut digits: Vec<char> = id.trim().chars().filter(|c| *c != '-').rev().collect();
    for place in [8, 13, 18, 23] {
        digits.insert(place, '-');
    }
    Ok(digits.into_iter().chain(['\n']).collect())
}
