//! A disk that outlives its guests.

use std::fs::File;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};
use tempfile::TempDir;

use crate::command::stdout_of;
use crate::packages;

/// A disk with an ext4, for one guest after the other. What a guest's kernel did not write, because
/// nobody flushed it, is lost with the guest.
#[derive(Debug)]
pub struct Disk {
    path: PathBuf,
    /// Removes the disk when this value is dropped.
    _directory: TempDir,
}

impl Disk {
    /// The modules of the guest's kernel that a disk needs.
    pub const MODULES: [&str; 2] = ["virtio_pci", "virtio_blk"];

    /// Makes an empty disk of that many MiB; it takes as much room on the host as is written to it.
    ///
    /// # Errors
    /// The host has no room for it, or lacks `mke2fs` and can't install it.
    pub fn create(mib: u32) -> Result<Self> {
        packages::ensure_ext4()?;
        let directory = tempfile::Builder::new().prefix("rbt-vm-").tempdir()?;
        let path = directory.path().join("disk");
        let file = File::create(&path)?;
        file.set_len(u64::from(mib) << 20)
            .with_context(|| format!("cannot make {}", path.display()))?;
        let mut format = Command::new("/sbin/mke2fs");
        stdout_of(format.args(["-q", "-F", "-t", "ext4"]).arg(&path))?;
        Ok(Self {
            path,
            _directory: directory,
        })
    }

    /// The emulator's arguments. What it has accepted is in the host's page cache, which outlives it:
    /// a flush by the guest need not wait for the host's own disk.
    pub(super) fn arguments(&self) -> [String; 4] {
        let file = self.path.display();
        [
            "-drive".to_owned(),
            format!("if=none,id=disk,format=raw,cache=unsafe,file={file}"),
            "-device".to_owned(),
            "virtio-blk-pci,drive=disk".to_owned(),
        ]
    }
}
