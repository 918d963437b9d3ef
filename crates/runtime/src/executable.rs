//! Whether a file can be executed.

use std::{fs, os::unix::fs::PermissionsExt as _, path::Path};

/// Whether the path is a regular file with an executable bit. Blocks.
pub(crate) fn is_executable(path: &Path) -> bool {
    fs::metadata(path)
        .is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}
