//! Free space of file systems, and disks without it.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use rustix::fs::FallocateFlags;
use rustix::io::Errno;
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};

/// Bytes that are free for this user on the file system of `path`.
///
/// # Errors
/// When the path can't be inspected.
pub fn free(path: &Path) -> Result<u64> {
    let stat = rustix::fs::statvfs(path)
        .with_context(|| format!("cannot inspect the file system of {}", path.display()))?;
    Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
}

/// The file that takes the space.
const FILL: &str = "fill";

/// A tmpfs in place of a directory; it is unmounted when the value is dropped.
#[derive(Debug)]
pub struct SmallDisk(PathBuf);

impl SmallDisk {
    /// Mounts one of `kib` KiB.
    ///
    /// # Errors
    /// It can't be mounted.
    pub fn mount(dir: &Path, kib: u32) -> Result<Self> {
        Self::mount_with(dir, &format!("size={kib}k,mode=0700"))
    }

    /// Mounts one of `kib` KiB that has room for so many files and directories.
    ///
    /// # Errors
    /// It can't be mounted.
    pub fn mount_with_inodes(dir: &Path, kib: u32, inodes: u32) -> Result<Self> {
        Self::mount_with(dir, &format!("size={kib}k,nr_inodes={inodes},mode=0700"))
    }

    fn mount_with(dir: &Path, options: &str) -> Result<Self> {
        let options = std::ffi::CString::new(options)?;
        mount(
            "none",
            dir,
            "tmpfs",
            MountFlags::empty(),
            Some(options.as_c_str()),
        )
        .with_context(|| format!("cannot mount a tmpfs on {}", dir.display()))?;
        Ok(Self(dir.to_owned()))
    }

    /// Leaves this many bytes free. What the runtime writes meanwhile may take space that was just counted
    /// as free; then it is counted again.
    ///
    /// # Errors
    /// The space can't be taken.
    pub fn fill(&self, free: u64) -> Result<()> {
        let file = std::fs::File::create(self.0.join(FILL))?;
        loop {
            let stat = rustix::fs::statvfs(&self.0)?;
            let size = (stat.f_bavail * stat.f_frsize).saturating_sub(free);
            match rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, size.max(1)) {
                Err(Errno::NOSPC) if size > 1 => {}
                filled => return Ok(filled?),
            }
        }
    }

    /// Frees the space that [`SmallDisk::fill`] took.
    ///
    /// # Errors
    /// It was not filled.
    pub fn empty(&self) -> Result<()> {
        Ok(std::fs::remove_file(self.0.join(FILL))?)
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Otherwise the test bed does it.
        let _ = unmount(&self.0, UnmountFlags::DETACH);
    }
}
