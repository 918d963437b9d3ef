//! On which file systems volumes, images and writable layers are, and what follows for shortages of
//! disk space: what the node can free itself, and which usage of pods counts.

use super::{EvictionSignal, StarvedResource};

/// The file systems of the node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FileSystemLayout {
    /// One for everything.
    #[default]
    Single,
    /// Images and writable layers are on another one than volumes and logs.
    ImageFileSystem,
    /// Images are on one of their own, writable layers on another.
    SplitImageFileSystem,
}

/// Something that the node frees before it evicts a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeReclaim {
    /// Containers and sandboxes that have exited and that no pod needs.
    DeadContainers,
    /// All images that no container and no pod uses.
    UnusedImages,
}

/// The parts of a pod's disk usage that count for a shortage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct DiskParts {
    pub(crate) writable_layers: bool,
    /// Logs and local volumes, which are always together.
    pub(crate) logs_and_volumes: bool,
}

const BOTH: &[NodeReclaim] = &[NodeReclaim::DeadContainers, NodeReclaim::UnusedImages];

impl FileSystemLayout {
    /// What the node frees for a shortage before a pod is evicted, in order (kubelet:
    /// `buildSignalToNodeReclaimFuncs`).
    #[must_use]
    pub fn reclaims(self, signal: EvictionSignal) -> &'static [NodeReclaim] {
        if !is_disk(signal) {
            return &[];
        }
        match (self, place(signal)) {
            (Self::Single, _) | (Self::ImageFileSystem, DiskPlace::Images | DiskPlace::Layers) => {
                BOTH
            }
            // Only volumes and logs are there.
            (Self::ImageFileSystem, DiskPlace::Node) => &[],
            (Self::SplitImageFileSystem, DiskPlace::Images) => &[NodeReclaim::UnusedImages],
            (Self::SplitImageFileSystem, DiskPlace::Node | DiskPlace::Layers) => {
                &[NodeReclaim::DeadContainers]
            }
        }
    }

    /// The usage by which pods are ranked for a shortage (kubelet: `buildSignalToRankFunc`).
    pub(crate) fn disk_parts(self, signal: EvictionSignal) -> DiskParts {
        let (writable_layers, logs_and_volumes) = match (self, place(signal)) {
            (Self::Single, _)
            | (Self::SplitImageFileSystem, DiskPlace::Node | DiskPlace::Layers) => (true, true),
            (Self::ImageFileSystem, DiskPlace::Node) => (false, true),
            (Self::ImageFileSystem, DiskPlace::Images | DiskPlace::Layers) => (true, false),
            // No pod writes there.
            (Self::SplitImageFileSystem, DiskPlace::Images) => (false, false),
        };
        DiskParts {
            writable_layers,
            logs_and_volumes,
        }
    }
}

/// The file system of a signal.
#[derive(Debug, Clone, Copy)]
enum DiskPlace {
    Node,
    Images,
    Layers,
}

fn is_disk(signal: EvictionSignal) -> bool {
    matches!(
        signal.resource(),
        StarvedResource::EphemeralStorage | StarvedResource::Inodes
    )
}

fn place(signal: EvictionSignal) -> DiskPlace {
    match signal {
        EvictionSignal::ImagefsAvailable | EvictionSignal::ImagefsInodesFree => DiskPlace::Images,
        EvictionSignal::ContainerfsAvailable | EvictionSignal::ContainerfsInodesFree => {
            DiskPlace::Layers
        }
        _ => DiskPlace::Node,
    }
}
