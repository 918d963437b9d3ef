//! Shortages of a node, and the pods that cause them.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::manifest::{pod, shell, with};
use crate::memory;

const MIB: u64 = 1 << 20;
/// Memory that a greedy pod can take before the threshold is met. What runs besides uses less meanwhile.
const MEMORY_ROOM: u64 = 1536 * MIB;
/// Memory that the machine must have, and that other tests leave it.
pub const MEMORY_NEEDED: u64 = 6144 * MIB;
/// Processes that a greedy pod can start before the threshold is met. What runs besides starts fewer meanwhile.
const PROCESS_ROOM: u64 = 1500;

/// The size of the disk of a node that runs out of disk or inodes, in KiB.
pub const DISK_KIB: u32 = 256 << 10;
/// The inodes of that disk.
pub const DISK_INODES: u32 = 4096;

/// What runs out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pressure {
    /// Memory of the machine.
    Memory,
    /// The disk of volumes and logs, of [`DISK_KIB`].
    Disk,
    /// Its inodes, of which it has [`DISK_INODES`].
    Inodes,
    /// Process IDs of the machine.
    Processes,
}

impl Pressure {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Memory, Self::Disk, Self::Inodes, Self::Processes];

    /// The signal in `evictionHard`.
    #[must_use]
    pub fn signal(self) -> &'static str {
        match self {
            Self::Memory => "memory.available",
            Self::Disk => "nodefs.available",
            Self::Inodes => "nodefs.inodesFree",
            Self::Processes => "pid.available",
        }
    }

    /// The type of the node's condition.
    #[must_use]
    pub fn condition(self) -> &'static str {
        match self {
            Self::Memory => "MemoryPressure",
            Self::Disk | Self::Inodes => "DiskPressure",
            Self::Processes => "PIDPressure",
        }
    }

    /// The resource in messages.
    #[must_use]
    pub fn resource(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Disk => "ephemeral-storage",
            Self::Inodes => "inodes",
            Self::Processes => "pids",
        }
    }

    /// A threshold that the greedy pod meets, and nothing else.
    ///
    /// # Errors
    /// The machine has too little, or the kernel's files have an unknown form.
    pub fn threshold(self) -> Result<String> {
        Ok(match self {
            Self::Memory => {
                let available = memory::available_bytes()?;
                ensure!(available > MEMORY_NEEDED, "6 GiB of memory are not free");
                // An odd number, which messages show as it is.
                format!("{}Mi", ((available - MEMORY_ROOM) / MIB) | 1)
            }
            Self::Disk => "64Mi".to_owned(),
            Self::Inodes => "1000".to_owned(),
            Self::Processes => {
                let available = available_processes()?;
                let threshold = available.checked_sub(PROCESS_ROOM);
                threshold
                    .context("1500 process IDs are not free")?
                    .to_string()
            }
        })
    }

    /// A pod that takes it until little is left, with a pause now and then, so that the node can see it come.
    #[must_use]
    pub fn greedy(self, name: &str) -> Value {
        let script = match self {
            // At most 3 GiB.
            Self::Memory => {
                "i=0; while [ $i -lt 48 ]; do dd if=/dev/zero of=/data/$i bs=1M count=64; i=$((i+1)); sleep 0.1; \
                 done; sleep 1000"
            }
            Self::Disk => {
                "i=0; while [ $i -lt 240 ]; do dd if=/dev/zero of=/data/$i bs=1M count=1; i=$((i+1)); sleep 0.05; \
                 done; sleep 1000"
            }
            Self::Inodes => {
                "i=0; while [ $i -lt 3900 ]; do : > /data/$i; i=$((i+1)); done; sleep 1000"
            }
            Self::Processes => "i=0; while [ $i -lt 2500 ]; do sleep 1000 & i=$((i+1)); done; wait",
        };
        let medium = match self {
            Self::Memory => "Memory",
            Self::Disk | Self::Inodes | Self::Processes => "",
        };
        let mounts = json!([{ "name": "data", "mountPath": "/data" }]);
        let spec = json!({
            "containers": [with(shell("main", script), &json!({ "volumeMounts": mounts }))],
            "volumes": [{ "name": "data", "emptyDir": { "medium": medium } }],
        });
        pod(name, &spec)
    }
}

/// Process IDs that are free, as the kubelet counts them.
fn available_processes() -> Result<u64> {
    let number = |file: &str| -> Result<u64> {
        let text = std::fs::read_to_string(format!("/proc/sys/kernel/{file}"))?;
        Ok(text.trim().parse()?)
    };
    let load = std::fs::read_to_string("/proc/loadavg")?;
    let tasks = load.split_whitespace().nth(3);
    let (_, used) = tasks
        .and_then(|tasks| tasks.split_once('/'))
        .context("/proc/loadavg has no number of tasks")?;
    let most = number("pid_max")?.min(number("threads-max")?);
    Ok(most.saturating_sub(used.parse()?))
}
