//! A machine that loses its power.

use std::path::PathBuf;

use anyhow::{Context, Result};

use super::Embedded;
use crate::cleanup::{cgroups, mounts, network, nft, processes};

/// Where the kernel tells which boot this is.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

impl Embedded {
    /// Makes the machine look as after a loss of power: no process, mount, cgroup or network interface
    /// is left, and the run folder is empty. A file with the id of the boot that follows.
    ///
    /// # Errors
    /// When something can't be removed.
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

/// The id of this boot with its digits turned round.
fn other_boot_id() -> Result<String> {
    let id = std::fs::read_to_string(BOOT_ID).with_context(|| format!("cannot read {BOOT_ID}"))?;
    let mut digits: Vec<char> = id.trim().chars().filter(|c| *c != '-').rev().collect();
    for place in [8, 13, 18, 23] {
        digits.insert(place, '-');
    }
    Ok(digits.into_iter().chain(['\n']).collect())
}
