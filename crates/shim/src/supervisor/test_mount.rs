//! A small tmpfs for tests of a full disk.

use std::path::{Path, PathBuf};

use rubelet_host::mount::{self, TmpfsOptions};

/// Mounted until it is dropped.
pub(crate) struct Tmpfs(PathBuf);

impl Tmpfs {
    pub(crate) fn new(name: &str, bytes: u64) -> Self {
        let path = std::env::temp_dir().join(format!("rbt-shim-{name}"));
        while matches!(mount::unmount(&path, true), Ok(mount::UnmountOutcome::Gone)) {}
        std::fs::create_dir_all(&path).unwrap();
        let options = TmpfsOptions {
            size: Some(bytes),
            ..TmpfsOptions::default()
        };
        mount::tmpfs(&path, options).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Tmpfs {
    fn drop(&mut self) {
        let _ = mount::unmount(&self.0, true);
        let _ = std::fs::remove_dir(&self.0);
    }
}
