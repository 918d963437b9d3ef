//! Reads file systems, and the sizes of directories of log files.

use std::{fs, io, os::unix::fs::MetadataExt as _, path::Path};

use jiff::Timestamp;

use crate::sample::FsSample;

/// Files of a directory that are counted.
const MOST_FILES: usize = 4096;

/// The file system of a path. Blocks as long as the file system does.
///
/// # Errors
/// The path does not exist, or the file system does not respond.
pub(crate) fn read(path: &Path, at: Timestamp) -> io::Result<FsSample> {
    let stat = rustix::fs::statvfs(path)?;
    let bytes = |blocks: u64| blocks.saturating_mul(stat.f_frsize);
    // Some file systems allocate inodes dynamically, and have no number of them.
    let inodes = |count: u64| (stat.f_files > 0).then_some(count);
    Ok(FsSample {
        at,
        available: Some(bytes(stat.f_bavail)),
        capacity: Some(bytes(stat.f_blocks)),
        used: Some(bytes(stat.f_blocks.saturating_sub(stat.f_bfree))),
        inodes_free: inodes(stat.f_ffree),
        inodes: inodes(stat.f_files),
        inodes_used: inodes(stat.f_files.saturating_sub(stat.f_ffree)),
    })
}

/// The block device of the file system of a path, such as `/dev/vda1`; `None` if it has none.
pub(crate) fn device(path: &Path) -> Option<Box<str>> {
    let number = fs::metadata(path).ok()?.dev();
    let (major, minor) = (rustix::fs::major(number), rustix::fs::minor(number));
    block_device(major, minor)
}

/// The name of a block device; `None` if it is gone.
pub(crate) fn block_device(major: u32, minor: u32) -> Option<Box<str>> {
    let link = Path::new("/sys/dev/block").join(format!("{major}:{minor}"));
    let target = fs::read_link(link).ok()?;
    Some(format!("/dev/{}", target.file_name()?.to_str()?).into())
}

/// Bytes and inodes of the files in a directory, itself included; directories in it, and links, are
/// not followed. `None` if it can't be read.
pub(crate) fn files_in(directory: &Path) -> Option<(u64, u64)> {
    let (mut bytes, mut inodes) = (0_u64, 1_u64);
    for entry in fs::read_dir(directory).ok()?.take(MOST_FILES) {
        // A rotated file may be removed meanwhile. Metadata of an entry does not follow links.
        if let Ok(metadata) = entry.and_then(|entry| entry.metadata()) {
            inodes += 1;
            if metadata.is_file() {
                bytes = bytes.saturating_add(metadata.len());
            }
        }
    }
    Some((bytes, inodes))
}

/// Bytes and inodes of the files in a directory, without itself, directories and links.
pub(crate) fn regular_files_in(directory: &Path) -> (u64, u64) {
    let Ok(entries) = fs::read_dir(directory) else {
        return (0, 0);
    };
    let is_file = |entry: &fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_file());
    let entries = entries.take(MOST_FILES).filter_map(Result::ok);
    let files = entries
        .filter(is_file)
        .filter_map(|entry| file(&entry.path()));
    files.fold((0, 0), |(bytes, inodes), one| {
        (bytes.saturating_add(one.0), inodes + one.1)
    })
}

/// Allocated bytes of a file, and its inode; `None` if there is none.
pub(crate) fn file(path: &Path) -> Option<(u64, u64)> {
    let metadata = fs::symlink_metadata(path).ok()?;
    metadata.is_file().then(|| (metadata.blocks() * 512, 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_of_log_files_are_added_up_and_links_are_not_followed() {
        let directory = tempfile::Builder::new()
            .prefix("rbt-stats-")
            .tempdir()
            .unwrap();
        let path = directory.path();
        fs::write(path.join("0.log"), "12345").unwrap();
        fs::write(path.join("0.log.1.gz"), "123").unwrap();
        std::os::unix::fs::symlink("/proc/kcore", path.join("1.log")).unwrap();
        std::os::unix::fs::symlink("0.log", path.join("2.log")).unwrap();
        assert_eq!(files_in(path), Some((8, 5)));
        assert_eq!(files_in(&path.join("none")), None);
    }

    #[test]
    fn files_that_lie_in_a_directory_are_added_up() {
        let directory = tempfile::Builder::new()
            .prefix("rbt-stats-")
            .tempdir()
            .unwrap();
        let path = directory.path();
        fs::write(path.join("a"), vec![1; 8192]).unwrap();
        fs::create_dir(path.join("app")).unwrap();
        fs::write(path.join("app/0.log"), "12345").unwrap();
        std::os::unix::fs::symlink("/proc/kcore", path.join("link")).unwrap();
        let (bytes, inodes) = regular_files_in(path);
        assert!((8192..65536).contains(&bytes), "{bytes}");
        assert_eq!(inodes, 1);
        assert_eq!(regular_files_in(&path.join("none")), (0, 0));
        assert_eq!(file(&path.join("link")), None);
    }

    #[test]
    fn this_machine_has_a_file_system() {
        let found = read(Path::new("/"), Timestamp::UNIX_EPOCH).unwrap();
        assert!(found.capacity > Some(0) && found.used <= found.capacity);
        assert!(read(Path::new("/no/such/path"), Timestamp::UNIX_EPOCH).is_err());
    }
}
