//! What operations on volumes tell whoever counts them.

use rubelet_api::volume_plugin::VolumePlugin;

/// Something about an operation on one volume. Operations follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VolumeEvent {
    /// It begins.
    Began,
    /// It is over.
    Ended {
        /// Of the volume.
        plugin: VolumePlugin,
        /// Whether it succeeded.
        is_ok: bool,
    },
}

/// Is told of each operation on a volume.
pub type VolumeObserver<'a> = &'a dyn Fn(VolumeEvent);

/// Does `work` on a volume, and tells how it went; `is_ok` judges the result.
pub(crate) fn observed<T>(
    observer: VolumeObserver<'_>,
    plugin: VolumePlugin,
    work: impl FnOnce() -> T,
    is_ok: impl FnOnce(&T) -> bool,
) -> T {
    observer(VolumeEvent::Began);
    let result = work();
    observer(VolumeEvent::Ended {
        plugin,
        is_ok: is_ok(&result),
    });
    result
}
