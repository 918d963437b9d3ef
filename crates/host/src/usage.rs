//! Current usage of the machine's memory, disks and processes.

use std::{io, path::Path};

use crate::{
    machine::{File, MachineError},
    meminfo::MemInfo,
};

/// A limited resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// Available amount.
    pub available: u64,
    /// Total amount.
    pub capacity: u64,
}

/// One file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FileSystemUsage {
    /// Bytes, without those reserved for root.
    pub bytes: Usage,
    /// Inodes; no capacity on file systems that allocate them dynamically.
    pub inodes: Usage,
}

/// Memory in bytes. Available is everything outside the working set: free memory, and the inactive
/// part of the page cache, which the kernel reclaims first.
///
/// # Errors
/// `/proc` is not mounted, or has no such numbers.
pub fn memory(root: &Path) -> Result<Usage, MachineError> {
    let file = File::read(root, "proc/meminfo")?;
    let found = MemInfo::parse(&file.text);
    let field = |number: Option<u64>, name| number.ok_or_else(|| file.without(name));
    let free = field(found.free, "MemFree")?;
    let inactive = field(found.inactive_file, "Inactive(file)")?;
    Ok(Usage {
        available: free.saturating_add(inactive),
        capacity: field(found.total, "MemTotal")?,
    })
}

/// Processes and threads of the whole machine.
///
/// # Errors
/// `/proc` is not mounted, or has no such numbers.
pub fn pids(root: &Path) -> Result<Usage, MachineError> {
    let limit = |name: &str| -> Result<u64, MachineError> {
        let file = File::read(root, name)?;
        let number = file.text.trim().parse();
        number.map_err(|_| file.without("number"))
    };
    let capacity = limit("proc/sys/kernel/pid_max")?.min(limit("proc/sys/kernel/threads-max")?);
    let load = File::read(root, "proc/loadavg")?;
    // Such as `1.36 3.49 4.53 2/3518 3715089`: of 3518 tasks two run.
    let tasks = load.text.split_whitespace().nth(3);
    let tasks: Option<u64> = tasks.and_then(|tasks| tasks.split_once('/')?.1.parse().ok());
    let tasks = tasks.ok_or_else(|| load.without("number of tasks"))?;
    Ok(Usage {
        available: capacity.saturating_sub(tasks),
        capacity,
    })
}

/// The file system of a path. May block as long as the file system does.
///
/// # Errors
/// The path does not exist, or the file system does not respond.
pub fn file_system(path: &Path) -> io::Result<FileSystemUsage> {
    let stat = rustix::fs::statvfs(path)?;
    Ok(FileSystemUsage {
        bytes: Usage {
            available: stat.f_bavail.saturating_mul(stat.f_frsize),
            capacity: stat.f_blocks.saturating_mul(stat.f_frsize),
        },
        inodes: Usage {
            available: stat.f_ffree,
            capacity: stat.f_files,
        },
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn fake(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::Builder::new()
            .prefix("rbt-host-")
            .tempdir()
            .unwrap();
        for (name, text) in files {
            let path = root.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        root
    }

    #[test]
    fn idle_page_cache_counts_as_available() {
        let text = "MemTotal: 100 kB\nMemFree: 10 kB\nMemAvailable: 50 kB\nInactive(file): 5 kB\n";
        let found = memory(fake(&[("proc/meminfo", text)]).path()).unwrap();
        assert_eq!((found.available, found.capacity), (15 << 10, 100 << 10));
        let error = memory(fake(&[("proc/meminfo", "MemFree: 1 kB\n")]).path()).unwrap_err();
        assert!(error.to_string().ends_with("has no Inactive(file)"));
    }

    #[test]
    fn the_smaller_limit_of_processes_counts() {
        let files = |load| {
            [
                ("proc/sys/kernel/pid_max", "32768\n"),
                ("proc/sys/kernel/threads-max", "1000\n"),
                ("proc/loadavg", load),
            ]
        };
        let found = pids(fake(&files("1.36 3.49 4.53 2/350 3715089\n")).path()).unwrap();
        assert_eq!((found.available, found.capacity), (650, 1000));
        let error = pids(fake(&files("1 2 3\n")).path()).unwrap_err();
        assert!(error.to_string().ends_with("has no number of tasks"));
    }

    #[test]
    fn this_machine_can_be_measured() {
        let root = Path::new("/");
        for usage in [
            memory(root).unwrap(),
            pids(root).unwrap(),
            file_system(root).unwrap().bytes,
        ] {
            assert!(
                usage.capacity > 0 && usage.available <= usage.capacity,
                "{usage:?}"
            );
        }
        assert!(file_system(Path::new("/no/such/path")).is_err());
    }
}
