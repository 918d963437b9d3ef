//! Space that files take on disk.

use rubelet_host::tree_usage::TreeUsage;
use serde::{Deserialize, Serialize};

/// Space on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct DiskUsage {
    /// Bytes of blocks.
    pub bytes: u64,
    /// Inodes: files and directories.
    pub inodes: u64,
}

impl std::ops::AddAssign for DiskUsage {
    fn add_assign(&mut self, other: Self) {
        self.bytes += other.bytes;
        self.inodes += other.inodes;
    }
}

impl From<TreeUsage> for DiskUsage {
    fn from(TreeUsage { bytes, inodes, .. }: TreeUsage) -> Self {
        Self { bytes, inodes }
    }
}
