//! Capacity and identity of the machine.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use crate::meminfo::MemInfo;

/// Facts that do not change while the agent runs, except for hotplug.
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
    /// Boot ID.
    pub boot_id: String,
    /// Machine ID of the installation; machines without systemd or D-Bus have none.
    pub machine_id: Option<String>,
    /// The kernel's host name.
    pub hostname: String,
    /// Release of the kernel.
    pub kernel_version: String,
}

/// Huge pages of one size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct HugepagePool {
    /// Size of a page in bytes.
    pub page_size: u64,
    /// Number of reserved pages.
    pub pages: u64,
}

/// Why a fact about the machine can't be read.
#[derive(Debug, thiserror::Error)]
pub enum MachineError {
    /// A file of the kernel can't be read.
    #[error("cannot read {}", file.display())]
    Read {
        /// The file.
        file: PathBuf,
        /// The error.
        source: io::Error,
    },
    /// A file of the kernel has unexpected content.
    #[error("{} has no {what}", file.display())]
    Content {
        /// The file.
        file: PathBuf,
        /// The missing field.
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
        let memory = MemInfo::parse(&meminfo.text);
        let online = File::read(root, "sys/devices/system/cpu/online")?;
        let boot_id = File::read(root, "proc/sys/kernel/random/boot_id")?;
        let uname = rustix::system::uname();
        Ok(Self {
            cpus: count_list(&online.text).ok_or_else(|| online.without("list of processors"))?,
            memory: memory.total.ok_or_else(|| meminfo.without("MemTotal"))?,
            swap: memory.swap_total.unwrap_or(0),
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

/// The processors that are online, as the kernel lists them, such as `0-3,6`.
///
/// # Errors
/// The kernel's list can't be read.
pub fn online_cpus(root: &Path) -> Result<String, MachineError> {
    let online = File::read(root, "sys/devices/system/cpu/online")?;
    Ok(online.text.trim().to_owned())
}

/// Whether swap is enabled at this moment.
///
/// # Errors
/// The kernel's list of swap areas exists and can't be read.
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

/// The count of numbers in a list like `0-3,6`.
fn count_list(text: &str) -> Option<u64> {
    text.trim().split(',').try_fold(0, |sum: u64, part| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (first.parse::<u64>().ok()?, last.parse::<u64>().ok()?);
        sum.checked_add(last.checked_sub(first)?.checked_add(1)?)
    })
}

#[cfg(test)]
mod tests;
