//! `hostPath`: a path of the host, checked according to its `type`.

mod create;

use std::{
    fs::{self, FileType},
    io,
    os::unix::fs::FileTypeExt,
    path::{Path, PathBuf},
};

use rubelet_api::volume::HostPathCheck;

/// A `hostPath` can't be used.
#[derive(Debug, thiserror::Error)]
pub enum HostPathError {
    /// It does not exist, or has another type.
    #[error("hostPath type check failed: {} is not a {kind}", path.display())]
    Kind {
        /// The path.
        path: PathBuf,
        /// The required type.
        kind: &'static str,
    },
    /// It can't be created.
    #[error("cannot create the hostPath {}", path.display())]
    Create {
        /// The path.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
}

/// Checks a path, following symbolic links, and creates what its type requires.
///
/// # Errors
/// See [`HostPathError`].
pub fn check(path: &Path, check: HostPathCheck) -> Result<(), HostPathError> {
    let missing =
        || matches!(fs::metadata(path), Err(error) if error.kind() == io::ErrorKind::NotFound);
    let failed = |source| HostPathError::Create {
        path: path.to_owned(),
        source,
    };
    match check {
        HostPathCheck::DirectoryOrCreate if missing() => {
            return create::directory(path).map_err(failed);
        }
        HostPathCheck::FileOrCreate if missing() && create::file(path).map_err(failed)? => {
            return Ok(());
        }
        _ => {}
    }
    let (kind, is): (_, fn(&FileType) -> bool) = match check {
        // The runtime creates a missing path as a directory.
        HostPathCheck::Unchecked => return Ok(()),
        HostPathCheck::DirectoryOrCreate | HostPathCheck::Directory => {
            ("directory", FileType::is_dir)
        }
        HostPathCheck::FileOrCreate | HostPathCheck::File => ("file", FileType::is_file),
        HostPathCheck::Socket => ("socket file", FileType::is_socket),
        HostPathCheck::CharDevice => ("character device", FileType::is_char_device),
        HostPathCheck::BlockDevice => ("block device", FileType::is_block_device),
    };
    if fs::metadata(path).is_ok_and(|found| is(&found.file_type())) {
        return Ok(());
    }
    Err(HostPathError::Kind {
        path: path.to_owned(),
        kind,
    })
}

#[cfg(test)]
mod tests;
