//! Mounts below an instance's directory: root file systems, volumes, network namespaces.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use rustix::mount::{UnmountFlags, unmount};

/// The mount points below `dir`, in mount order.
///
/// # Errors
/// When the kernel's mount table can't be read.
pub fn below(dir: &Path) -> Result<Vec<PathBuf>> {
    let table = std::fs::read_to_string("/proc/self/mountinfo")
        .context("cannot read /proc/self/mountinfo")?;
    Ok(mount_points(&table)
        .filter(|path| path.starts_with(dir) && path != dir)
        .collect())
}

/// Unmounts everything below `dir`, the newest first.
///
/// # Errors
/// When something stays mounted.
pub fn unmount_below(dir: &Path) -> Result<()> {
    for path in below(dir)?.iter().rev() {
        // Unmounting a parent also detaches its children.
        let _ = unmount(path, UnmountFlags::DETACH | UnmountFlags::NOFOLLOW);
    }
    let left = below(dir)?;
    if let Some(first) = left.first() {
        bail!(
            "{} mounts are left, the first is {}",
            left.len(),
            first.display()
        );
    }
    Ok(())
}

fn mount_points(table: &str) -> impl Iterator<Item = PathBuf> {
    table
        .lines()
        .filter_map(|line| Some(PathBuf::from(unescape(line.split(' ').nth(4)?))))
}

/// The kernel writes spaces, tabs, line breaks and backslashes as three octal digits.
fn unescape(text: &str) -> String {
    [
        ("\\040", " "),
        ("\\011", "\t"),
        ("\\012", "\n"),
        ("\\134", "\\"),
    ]
    .into_iter()
    .fold(text.to_owned(), |text, (escape, plain)| {
        text.replace(escape, plain)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mount_points_are_the_unescaped_fifth_field() {
        let table = "22 1 0:5 / /dev rw - devtmpfs dev rw\n\
                     44 27 0:39 / /tmp/a\\040b rw shared:1 - overlay overlay rw\n";
        let found: Vec<_> = mount_points(table).collect();
        assert_eq!(found, [PathBuf::from("/dev"), PathBuf::from("/tmp/a b")]);
    }
}
