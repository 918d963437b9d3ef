//! The source of a container's root file system.

use std::path::{Path, PathBuf};

/// The layers of an overlay file system, all on the host.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Overlay {
    /// Read-only layers, topmost first; at least one.
    pub lower: Vec<PathBuf>,
    /// The upper directory; without it the root file system is read-only.
    pub upper: Option<PathBuf>,
    /// Empty directory on the file system of `upper`; needed with it.
    pub work: Option<PathBuf>,
}

/// The source of a container's root file system.
#[derive(Debug, Clone, Copy)]
pub enum RootfsSource<'a> {
    /// Layers that the init mounts in its mount namespace, where they are unmounted with the
    /// container.
    Overlay(&'a Overlay),
    /// A prepared directory.
    Directory(&'a Path),
}
