//! Capacity and identity of the machine.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// Facts that don't change while the agent runs, save for what is plugged in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    /// Processors that are online.
    pub cpus: u64,
    /// Memory in bytes.
    pub memory: u64,
    /// Swap space in bytes.
    pub swap: u64,
    /// Huge pages, by page size.
    pub hugepages: Vec<HugepagePool>,
    /// Identifier of this boot.
    pub boot_id: String,
    /// Identifier of the installation; machines without systemd or D-Bus have none.
    pub machine_id: Option<String>,
    /// Host name as the kernel has it.
    pub hostname: String,
    /// Release of the kernel.
    pub kernel_version: String,
}

/// Huge pages of one size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct HugepagePool {
    /// Size of a page in bytes.
    pub page_size: u64,
    /// Number of pages set aside.
    pub pages: u64,
}

/// Why a fact about the machine can't be had.
#[derive(Debug, thiserror::Error)]
pub enum MachineError {
    /// A file of the kernel can't be read.
    #[error("cannot read {}", file.display())]
    Read {
        /// The file.
        file: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file of the kernel says something unexpected.
    #[error("{} has no {what}", file.display())]
    Content {
        /// The file.
        file: PathBuf,
        /// What was looked for.
        what: &'static str,
    },
}

impl Machine {
    /// Reads the facts below `root`, which is `/` except in tests.
    ///
    /// # Errors
    /// A file that every Linux has can't be read.
    pub fn read(root: &Path) -> Result<Self, MachineError> {
        let meminfo = File::read(root, "proc/meminfo")?;
        let online = File::read(root, "sys/devices/system/cpu/online")?;
        let boot_id = File::read(root, "proc/sys/kernel/random/boot_id")?;
        let uname = rustix::system::uname();
        Ok(Self {
            cpus: count_list(&online.text).ok_or_else(|| online.without("list of processors"))?,
            memory: kib_field(&meminfo.text, "MemTotal")
                .ok_or_else(|| meminfo.without("MemTotal"))?,
            swap: kib_field(&meminfo.text, "SwapTotal").unwrap_or(0),
            hugepages: hugepages(root)?,
            boot_id: boot_id.text.trim().to_owned(),
            machine_id: ["etc/machine-id", "var/lib/dbus/machine-id"]
                .iter()
                .filter_map(|file| fs::read_to_string(root.join(file)).ok())
                .map(|id| id.trim().to_owned())
                .find(|id| !id.is_empty()),
            hostname: uname.nodename().to_string_lossy().into_owned(),
            kernel_version: uname.release().to_string_lossy().into_owned(),
        })
    }
}

/// Whether the machine swaps at this moment.
///
/// # Errors
/// The kernel's list of swap areas is there and can't be read.
pub fn swap_is_on(root: &Path) -> Result<bool, MachineError> {
    match File::read(root, "proc/swaps") {
        // The first line is the heading.
        Ok(swaps) => Ok(swaps.text.trim().lines().count() > 1),
        // A kernel without swap has no such file.
        Err(MachineError::Read { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
            Ok(false)
        }
        Err(error) => Err(error),
    }
}

/// Memory of this process that is resident, in bytes.
///
/// # Errors
/// `/proc` is not mounted.
pub fn self_rss_bytes() -> Result<u64, MachineError> {
    let status = File::read(Path::new("/"), "proc/self/status")?;
    kib_field(&status.text, "VmRSS").ok_or_else(|| status.without("VmRSS"))
}

fn hugepages(root: &Path) -> Result<Vec<HugepagePool>, MachineError> {
    let dir = root.join("sys/kernel/mm/hugepages");
    let entries = match fs::read_dir(&dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(source) => return Err(MachineError::Read { file: dir, source }),
    };
    let mut pools = Vec::new();
    for entry in entries {
        let entry = entry.map_err(|source| MachineError::Read {
            file: dir.clone(),
            source,
        })?;
        let name = entry.file_name();
        let size = name
            .to_str()
            .and_then(|name| name.strip_prefix("hugepages-"));
        let Some(kib) = size.and_then(|size| size.strip_suffix("kB")?.parse::<u64>().ok()) else {
            continue;
        };
        let count = File::read(&entry.path(), "nr_hugepages")?;
        let pages = count.text.trim().parse();
        pools.push(HugepagePool {
            page_size: kib * 1024,
            pages: pages.map_err(|_| count.without("number"))?,
        });
    }
    pools.sort_unstable();
    Ok(pools)
}

/// A small file of the kernel.
pub(crate) struct File {
    path: PathBuf,
    pub(crate) text: String,
}

impl File {
    pub(crate) fn read(root: &Path, name: &str) -> Result<Self, MachineError> {
        let path = root.join(name);
        match fs::read_to_string(&path) {
            Ok(text) => Ok(Self { path, text }),
            Err(source) => Err(MachineError::Read { file: path, source }),
        }
    }

    pub(crate) fn without(&self, what: &'static str) -> MachineError {
        MachineError::Content {
            file: self.path.clone(),
            what,
        }
    }
}

/// The value in bytes of a line like `MemTotal:  24684096 kB`.
pub(crate) fn kib_field(text: &str, name: &str) -> Option<u64> {
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    line.trim()
        .strip_suffix("kB")?
        .trim()
        .parse::<u64>()
        .ok()?
        .checked_mul(1024)
}

/// How many numbers a list like `0-3,6` has.
fn count_list(text: &str) -> Option<u64> {
    text.trim().split(',').try_fold(0, |sum: u64, part| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (first.parse::<u64>().ok()?, last.parse::<u64>().ok()?);
        sum.checked_add(last.checked_sub(first)?.checked_add(1)?)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fake(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::Builder::new()
            .prefix("rubelet-t")
            .tempdir()
            .unwrap();
        for (name, text) in files {
            let path = root.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        root
    }

    const FILES: [(&str, &str); 6] = [
        (
            "proc/meminfo",
            "MemTotal:       2048 kB\nSwapTotal:  1024 kB\n",
        ),
        ("sys/devices/system/cpu/online", "0-3,6,8-9\n"),
        ("proc/sys/kernel/random/boot_id", "b00t\n"),
        ("var/lib/dbus/machine-id", "abc\n"),
        (
            "sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages",
            "0\n",
        ),
        (
            "sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages",
            "3\n",
        ),
    ];

    #[test]
    fn facts_are_read_from_the_kernels_files() {
        let machine = Machine::read(fake(&FILES).path()).unwrap();
        assert_eq!(machine.cpus, 7);
        assert_eq!((machine.memory, machine.swap), (2 << 20, 1 << 20));
        assert_eq!(machine.boot_id, "b00t");
        assert_eq!(machine.machine_id.as_deref(), Some("abc"));
        let pools = [(2 << 20, 3), (1 << 30, 0)];
        assert_eq!(
            machine.hugepages,
            pools.map(|(page_size, pages)| HugepagePool { page_size, pages })
        );
    }

    #[test]
    fn what_is_missing_is_named() {
        let error =
            |files: &[(&str, &str)]| Machine::read(fake(files).path()).unwrap_err().to_string();
        assert!(
            error(&FILES[1..]).starts_with("cannot read "),
            "{}",
            error(&FILES[1..])
        );
        let mut files = FILES;
        files[0].1 = "MemFree: 1 kB\n";
        assert!(
            error(&files).ends_with("proc/meminfo has no MemTotal"),
            "{}",
            error(&files)
        );
        files = FILES;
        files[1].1 = "3-1\n";
        assert!(
            error(&files).ends_with("online has no list of processors"),
            "{}",
            error(&files)
        );
    }

    #[test]
    fn swap_is_on_when_an_area_is_listed() {
        let heading = "Filename\t\t\t\tType\t\tSize\n";
        let area = format!("{heading}/dev/sda2 partition 1024\n");
        assert!(!swap_is_on(fake(&[]).path()).unwrap());
        assert!(!swap_is_on(fake(&[("proc/swaps", heading)]).path()).unwrap());
        assert!(swap_is_on(fake(&[("proc/swaps", &area)]).path()).unwrap());
    }

    #[test]
    fn this_machine_can_be_read() {
        let machine = Machine::read(Path::new("/")).unwrap();
        assert!(machine.cpus > 0 && machine.memory > 0 && !machine.boot_id.is_empty());
        assert!(self_rss_bytes().unwrap() > 0);
    }
}
