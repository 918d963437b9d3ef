//! Directories of instances that are file systems in memory. Tests make and remove thousands of small files, which on
//! some disks is two fifths of the work of the processors: an ext4 without a journal looks through all inodes that were
//! freed a moment ago for each new file.

use std::path::Path;

use anyhow::{Context, Result};
use rustix::io::Errno;
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};

use crate::memory;

/// The environment variable that asks for it. `cargo xtask test` sets it, benchmarks measure disks.
pub const VARIABLE: &str = "RUBELET_TEST_IN_MEMORY";

/// With less available memory, in bytes, directories stay on the disk.
const LEAST_AVAILABLE: u64 = 8 << 30;
/// The first kernel whose file systems in memory can do all that others can: identity mappings (6.3), and
/// extended attributes of users.
const FIRST_KERNEL: (u32, u32) = (6, 6);

/// Whether this machine has the memory and the kernel.
#[must_use]
pub fn is_possible() -> bool {
    let uname = rustix::system::uname();
    let release = uname.release().to_string_lossy();
    kernel(&release) >= Some(FIRST_KERNEL)
        && memory::available_bytes().is_ok_and(|bytes| bytes >= LEAST_AVAILABLE)
}

/// The first two numbers of a kernel's version.
fn kernel(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|other: char| !other.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

/// Mounts a file system in memory on an empty directory.
pub(super) fn set_up(dir: &Path) -> Result<()> {
    mount("tmpfs", dir, "tmpfs", MountFlags::empty(), c"mode=755")
        .with_context(|| format!("cannot mount a tmpfs on {}", dir.display()))
}

/// Unmounts it. A directory on a disk stays as it is.
pub(crate) fn tear_down(dir: &Path) -> Result<()> {
    match unmount(dir, UnmountFlags::DETACH | UnmountFlags::NOFOLLOW) {
        Ok(()) | Err(Errno::INVAL | Errno::NOENT) => Ok(()),
        Err(error) => Err(error).with_context(|| format!("cannot unmount {}", dir.display())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_kernels_are_compared_by_number() {
        for (release, expected) in [
            ("6.18.44-fc-v595", Some((6, 18))),
            ("6.6-rc1", Some((6, 6))),
            ("5.10.0-9-amd64", Some((5, 10))),
            ("6", None),
            ("", None),
        ] {
            assert_eq!(kernel(release), expected, "{release}");
        }
        assert!(kernel("6.18.1") > Some(FIRST_KERNEL));
    }
}
