//! A disk that outlives its guests.

use std::fs::File;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};
use tempfile::TempDir;

use crate::command::stdout_of;
use crate::packages;

/// A disk with an ext4, for one guest after the other. Data that was not flushed is lost with the
/// guest.
#[derive(Debug)]
pub struct Disk {
    path: PathBuf,
    /// An option that the guest mounts it with.
    mount_option: Option<&'static str>,
    /// Removes the disk when this value is dropped.
    _directory: TempDir,
}

impl Disk {
    /// The modules of the guest's kernel that a disk needs.
    pub const MODULES: [&str; 2] = ["virtio_pci", "virtio_blk"];

    /// Creates an empty disk of this size, in MiB; it takes only as much space on the host as is
    /// written to it.
    ///
    /// # Errors
    /// The host has no space for it, or lacks `mke2fs` and can't install it.
    pub fn create(mib: u32) -> Result<Self> {
        Self::format(mib, &[], None)
    }

    /// As [`Disk::create`], with quotas of projects. The guest's kernel needs the module `quota_v2`.
    ///
    /// # Errors
    /// As [`Disk::create`].
    pub fn with_project_quotas(mib: u32) -> Result<Self> {
        let features = ["-O", "quota,project", "-E", "quotatype=prjquota"];
        Self::format(mib, &features, Some("prjquota"))
    }

    fn format(mib: u32, features: &[&str], mount_option: Option<&'static str>) -> Result<Self> {
        packages::ensure_ext4()?;
        let directory = tempfile::Builder::new().prefix("rbt-vm-").tempdir()?;
        let path = directory.path().join("disk");
        let file = File::create(&path)?;
        file.set_len(u64::from(mib) << 20)
            .with_context(|| format!("cannot create {}", path.display()))?;
        let mut format = Command::new("/sbin/mke2fs");
        format.args(["-q", "-F", "-t", "ext4"]).args(features);
        stdout_of(format.arg(&path))?;
        Ok(Self {
            path,
            mount_option,
            _directory: directory,
        })
    }

    /// The option of `init.sh` with which the guest mounts it, for the kernel's command line.
    pub(super) fn mount_option(&self) -> Option<String> {
        let option = self.mount_option?;
        Some(format!("disk_option={option}"))
    }

    /// The emulator's arguments. Written data is in the host's page cache, which outlives the
    /// emulator: a flush by the guest need not wait for the host's disk.
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
