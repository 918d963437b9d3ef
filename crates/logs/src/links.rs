//! The links `/var/log/containers/*.log`, which older log collectors follow. Calls block.

use std::{
    collections::BTreeSet,
    fs,
    hash::{DefaultHasher, Hash, Hasher},
    io,
    os::unix::fs::{DirBuilderExt, symlink},
    path::{Component, Path, PathBuf},
};

use crate::file_error::FileError;

/// A link could not be created or removed.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// Something that is not a link has the link's name.
    #[error("{} is not a symbolic link; move it away", .0.display())]
    NotALink(PathBuf),
    /// A file system operation failed.
    #[error(transparent)]
    File(#[from] FileError),
}

/// Makes `directory/name` point to `log`, atomically replacing a link that points elsewhere. The
/// directory is created if necessary.
///
/// # Errors
/// A file of another type has that name, or a file system operation failed.
pub fn create_link(directory: &Path, name: &str, log: &Path) -> Result<(), LinkError> {
    let link = directory.join(name);
    let failed = || FileError::of("create log link", &link);
    match fs::symlink_metadata(&link) {
        Ok(meta) if !meta.is_symlink() => return Err(LinkError::NotALink(link)),
        Ok(_) if fs::read_link(&link).is_ok_and(|target| target == log) => return Ok(()),
        _ => {}
    }
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o755)
        .create(directory)
        .map_err(failed())?;
    // Not a `.log` name, so that collectors which watch the directory never open it. Hashed,
    // because the name itself may already have the maximum length.
    let mut hasher = DefaultHasher::new();
    name.hash(&mut hasher);
    let fresh = directory.join(format!(".{:016x}.new", hasher.finish()));
    remove(&fresh)?;
    let linked = symlink(log, &fresh).and_then(|()| fs::rename(&fresh, &link));
    Ok(linked.map_err(failed())?)
}

/// Removes a link. A missing one is not an error.
///
/// # Errors
/// A file that is not a link has that name, or a file system operation failed.
pub fn remove_link(directory: &Path, name: &str) -> Result<(), LinkError> {
    let link = directory.join(name);
    match fs::symlink_metadata(&link) {
        Ok(meta) if !meta.is_symlink() => Err(LinkError::NotALink(link)),
        Ok(_) => remove(&link),
        Err(_) => Ok(()),
    }
}

/// Removes the links below `directory` whose log does not exist, and returns their names. Only
/// links that point below `pod_logs` are considered; others belong to other programs. `keep` holds
/// the names of links of containers that have not exited: their log is missing for a moment during
/// rotation.
///
/// # Errors
/// The directory exists and can't be read. A single link that can't be removed is kept for the next
/// call.
pub fn remove_dangling_links(
    directory: &Path,
    pod_logs: &Path,
    keep: &BTreeSet<String>,
) -> Result<Vec<String>, LinkError> {
    let failed = || FileError::of("read log link directory", directory);
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed()(error).into()),
    };
    let mut removed = Vec::new();
    for entry in entries {
        let entry = entry.map_err(failed())?;
        let Ok(name) = entry.file_name().into_string() else {
            continue;
        };
        let Ok(target) = fs::read_link(entry.path()) else {
            continue;
        };
        if keep.contains(&name) || !is_below(&target, pod_logs) {
            continue;
        }
        let gone =
            fs::symlink_metadata(&target).is_err_and(|e| e.kind() == io::ErrorKind::NotFound);
        if gone && remove(&entry.path()).is_ok() {
            removed.push(name);
        }
    }
    Ok(removed)
}

fn is_below(target: &Path, directory: &Path) -> bool {
    target.starts_with(directory) && !target.components().any(|part| part == Component::ParentDir)
}

fn remove(path: &Path) -> Result<(), LinkError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(FileError::of("remove log link", path)(error).into())
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
