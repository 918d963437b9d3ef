//! The limit that a pod exceeds.

use rubelet_api::resources::Bytes;

use super::limits::{StorageLimit, StorageLimits};
use crate::eviction::{ContainerUsage, FileSystemLayout, PodUsage};

/// The kinds of limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StorageLimitKind {
    /// Of an `emptyDir`.
    EmptyDir,
    /// Of the pod: the sum of its containers.
    Pod,
    /// Of a container.
    Container,
}

impl StorageLimitKind {
    /// The value of the label `eviction_signal` in metrics.
    #[must_use]
    pub fn signal(self) -> &'static str {
        match self {
            Self::EmptyDir => "emptydirfs.limit",
            Self::Pod => "ephemeralpodfs.limit",
            Self::Container => "ephemeralcontainerfs.limit",
        }
    }
}

/// A limit that a pod exceeds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExceededLimit {
    /// Its kind.
    pub kind: StorageLimitKind,
    /// `status.message` of the evicted pod, and the message of the event.
    pub message: String,
}

/// The first limit that a pod exceeds: of a volume, of the whole pod, or of a container.
#[must_use]
pub fn exceeded(
    limits: &StorageLimits,
    usage: &PodUsage,
    layout: FileSystemLayout,
) -> Option<ExceededLimit> {
    let found = uses(limits, usage, layout).find(|(_, limit, used)| *used > limit.bytes);
    found.map(|(kind, StorageLimit { name, text, .. }, _)| ExceededLimit {
        kind,
        message: match kind {
            StorageLimitKind::EmptyDir => {
                format!("Usage of EmptyDir volume \"{name}\" exceeds the limit \"{text}\". ")
            }
            StorageLimitKind::Pod => format!(
                "Pod ephemeral local storage usage exceeds the total limit of containers {text}. "
            ),
            StorageLimitKind::Container => {
                format!("Container {name} exceeded its local ephemeral storage limit \"{text}\". ")
            }
        },
    })
}

/// The bytes that a pod can write before it exceeds a limit.
#[must_use]
pub fn headroom(limits: &StorageLimits, usage: &PodUsage, layout: FileSystemLayout) -> Bytes {
    let left = uses(limits, usage, layout).map(|(_, limit, used)| limit.bytes.saturating_sub(used));
    left.min().unwrap_or(Bytes::MAX)
}

/// All limits with what is used of each. What was not measured counts as nothing.
fn uses<'a>(
    limits: &'a StorageLimits,
    usage: &'a PodUsage,
    layout: FileSystemLayout,
) -> impl Iterator<Item = (StorageLimitKind, &'a StorageLimit, Bytes)> {
    let volumes = limits.volumes.iter().map(|limit| {
        let mut found = usage.volumes.iter().filter(|one| one.name == limit.name);
        let used = found.next().map_or(0, |one| one.usage.bytes);
        (StorageLimitKind::EmptyDir, limit, used)
    });
    let pod = limits.pod.iter().map(|limit| {
        let used = usage.disk_total().bytes;
        (StorageLimitKind::Pod, limit, used)
    });
    let containers = limits.containers.iter().map(move |limit| {
        let mut found = usage.containers.iter().filter(|one| one.name == limit.name);
        let used = found.next().map_or(0, |one| of_container(one, layout));
        (StorageLimitKind::Container, limit, used)
    });
    volumes.chain(pod).chain(containers)
}

/// Logs, and the writable layer if it is on the disk of the volumes.
fn of_container(usage: &ContainerUsage, layout: FileSystemLayout) -> Bytes {
    let logs = usage.logs.map_or(0, |logs| logs.bytes);
    let layer = usage.writable_layer.map_or(0, |layer| layer.bytes);
    match layout {
        FileSystemLayout::Single => logs.saturating_add(layer),
        FileSystemLayout::ImageFileSystem | FileSystemLayout::SplitImageFileSystem => logs,
    }
}
