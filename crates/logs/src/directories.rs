//! Creates and removes log directories and files. Calls block; they touch a few directory entries.

mod within;

use std::{ffi::OsStr, fs, io, path::Path};

use rubelet_base::{PodName, PodUid};

use crate::{
    file_error::FileError,
    layout::{LayoutError, PodLogDir, attempt_of, log_name},
};

/// A log directory could not be created, read or removed.
#[derive(Debug, thiserror::Error)]
pub enum DirectoryError {
    /// A name that is not valid in the path.
    #[error("invalid name of a log directory")]
    Layout(#[from] LayoutError),
    /// A file system operation failed.
    #[error(transparent)]
    File(#[from] FileError),
}

/// Creates the log directory of a pod with mode 0755, and its parents.
///
/// # Errors
/// A file system operation failed, or a file of another type has the name.
pub fn create_pod_log_dir(dir: &PodLogDir) -> Result<(), DirectoryError> {
    let made = within::make_pod_dir(dir.path()).map(drop);
    Ok(made.map_err(FileError::of(CREATE, dir.path()))?)
}

/// Creates the log directory of a container in that of its pod: CRI-O, other than containerd, expects to find it.
///
/// # Errors
/// As [`create_pod_log_dir`].
pub fn create_container_log_dir(dir: &PodLogDir, container: &str) -> Result<(), DirectoryError> {
    let path = dir.container(container)?;
    let made = within::make_container_dir(dir.path(), container);
    Ok(made.map_err(FileError::of(CREATE, &path))?)
}

const CREATE: &str = "create log directory";

/// Removes the log directory of a pod with all its logs. A missing one is not an error. Symbolic
/// links are removed, never followed.
///
/// # Errors
/// A file system operation failed.
pub fn remove_pod_log_dir(dir: &PodLogDir) -> Result<(), DirectoryError> {
    match fs::remove_dir_all(dir.path()) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(FileError::of("remove log directory", dir.path())(error).into())
        }
        _ => Ok(()),
    }
}

/// Removes the logs of one attempt of a container: the current file and the rotated ones.
///
/// # Errors
/// A file system operation failed; as much as possible is removed.
pub fn remove_container_logs(
    dir: &PodLogDir,
    container: &str,
    attempt: u32,
) -> Result<(), DirectoryError> {
    let directory = dir.container(container)?;
    let failed = |action| FileError::of(action, &directory);
    let opened = match within::container_dir(dir.path(), OsStr::new(container)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        opened => opened.map_err(failed(READ))?,
    };
    let current = log_name(attempt);
    let mut result = Ok(());
    for name in within::names(&opened).map_err(failed(READ))? {
        let ours = name
            .strip_prefix(&*current)
            .is_some_and(|s| s.is_empty() || s.starts_with('.'));
        if ours && let Err(error) = within::remove_file(&opened, &name) {
            let failed = FileError::of("remove log", &directory.join(&name))(error);
            result = Err(failed.into());
        }
    }
    result
}

const READ: &str = "read log directory";

/// The attempt after the highest one with a log, including rotated ones; 0 if there is none. It
/// numbers a container whose earlier attempts the runtime does not know any more.
///
/// # Errors
/// The directory exists and can't be read.
pub fn next_attempt(dir: &PodLogDir, container: &str) -> Result<u32, DirectoryError> {
    let names = names(&dir.container(container)?)?;
    let next = |name: &String| attempt_of(name).map(|attempt| attempt.saturating_add(1));
    Ok(names.iter().filter_map(next).max().unwrap_or(0))
}

/// The pods that have a log directory below `root`. Other entries are skipped.
///
/// # Errors
/// `root` exists and can't be read.
pub fn list_pod_log_dirs(root: &Path) -> Result<Vec<(PodName, PodUid, PodLogDir)>, DirectoryError> {
    let mut found: Vec<_> = names(root)?
        .iter()
        .filter_map(|name| PodLogDir::from_found(root, name))
        .collect();
    found.retain(|(_, _, dir)| fs::symlink_metadata(dir.path()).is_ok_and(|meta| meta.is_dir()));
    found.sort();
    Ok(found)
}

/// UTF-8 names in a directory; none if the directory does not exist.
pub(crate) fn names(directory: &Path) -> Result<Vec<String>, DirectoryError> {
    let failed = || FileError::of(READ, directory);
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed()(error).into()),
    };
    let mut names = Vec::new();
    for entry in entries {
        names.extend(entry.map_err(failed())?.file_name().into_string());
    }
    Ok(names)
}

#[cfg(test)]
mod tests;
