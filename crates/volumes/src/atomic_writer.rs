//! Atomic updates of several files. They are in a timestamped directory; `..data` is a symbolic
//! link to it, and each name that a container sees is a link through `..data`. An update creates a
//! new directory and replaces `..data`, so that a container sees either all old files or all new
//! ones. Source of the layout: upstream's volumes, whose readers watch `..data`.

use std::{
    collections::BTreeSet,
    fs::{self, OpenOptions},
    io::{self, Write},
    os::unix::fs::{MetadataExt, OpenOptionsExt, lchown, symlink},
    path::{Path, PathBuf},
};

use jiff::Timestamp;

use crate::{directory, payload::Payload};

const DATA: &str = "..data";
const NEW_DATA: &str = "..data_tmp";
/// Name of the next directory until it is complete and gets its timestamp.
const DRAFT: &str = "..draft";

/// A file or directory of a volume that can't be created.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {}", path.display())]
pub struct WriteError {
    /// Its path.
    pub path: PathBuf,
    /// The error.
    #[source]
    pub source: io::Error,
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> WriteError {
    let path = path.to_owned();
    move |source| WriteError { path, source }
}

/// Updates the files of the volume `dir` to those of `payload`. If they are current, only missing
/// links are created. `give` is called with a new directory's files before they become visible.
///
/// # Errors
/// A file can't be written; the old files stay visible.
pub(crate) fn write<E: From<WriteError>>(
    dir: &Path,
    payload: &Payload,
    give: impl FnOnce() -> Result<(), E>,
) -> Result<(), E> {
    let data = dir.join(DATA);
    let current = match fs::read_link(&data) {
        Ok(target) => Some(target),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(at(&data)(error).into()),
    };
    let same = current
        .as_ref()
        .is_some_and(|current| holds(&dir.join(current), payload));
    let mut newest = current;
    if !same {
        sweep(dir, newest.as_deref())?;
        let made = fill(dir, payload)?;
        give()?;
        publish(dir, &made)?;
        newest = Some(made);
    }
    link(dir, payload)?;
    unlink(dir, payload)?;
    sweep(dir, newest.as_deref())?;
    Ok(())
}

/// True if a directory contains exactly these files.
fn holds(directory: &Path, payload: &Payload) -> bool {
    let mut found = BTreeSet::new();
    if files(directory, "", &mut found).is_err() || found.len() != payload.len() {
        return false;
    }
    payload.iter().all(|(path, file)| {
        found.contains(&**path)
            && fs::read(directory.join(&**path)).is_ok_and(|data| *data == *file.data)
    })
}

/// The paths of all files below a directory.
fn files(directory: &Path, above: &str, found: &mut BTreeSet<String>) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let name = entry.file_name();
        let path = format!("{above}{}", name.to_string_lossy());
        if entry.file_type()?.is_dir() {
            files(&entry.path(), &format!("{path}/"), found)?;
        } else {
            found.insert(path);
        }
    }
    Ok(())
}

/// Creates the directory of the new files and returns its name.
fn fill(dir: &Path, payload: &Payload) -> Result<PathBuf, WriteError> {
    let draft = dir.join(DRAFT);
    fs::create_dir(&draft).map_err(at(&draft))?;
    directory::set_mode(&draft, 0o755).map_err(at(&draft))?;
    for (path, file) in payload {
        let path = draft.join(&**path);
        if let Some(parent) = path.parent() {
            directory::ensure(parent, 0o755).map_err(at(parent))?;
        }
        let write = || {
            let mut open = OpenOptions::new()
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(&path)?;
            open.write_all(&file.data)?;
            if let Some(owner) = file.owner {
                lchown(&path, Some(owner), None)?;
            }
            directory::set_mode(&path, file.mode)
        };
        write().map_err(at(&path))?;
    }
    // The file system's time of the last change to the directory.
    let metadata = fs::metadata(&draft).map_err(at(&draft))?;
    let name = time_name(metadata.mtime(), metadata.mtime_nsec());
    let mut made = PathBuf::from(&name);
    let mut again = 0;
    while fs::symlink_metadata(dir.join(&made)).is_ok() {
        again += 1;
        made = PathBuf::from(format!("{name}{again}"));
    }
    let target = dir.join(&made);
    fs::rename(&draft, &target).map_err(at(&target))?;
    Ok(made)
}

fn time_name(seconds: i64, nanoseconds: i64) -> String {
    let time = Timestamp::from_second(seconds).unwrap_or_default();
    format!("{}.{nanoseconds:09}", time.strftime("..%Y_%m_%d_%H_%M_%S"))
}

/// Points `..data` to the new directory.
fn publish(dir: &Path, made: &Path) -> Result<(), WriteError> {
    let new = dir.join(NEW_DATA);
    symlink(made, &new).map_err(at(&new))?;
    let data = dir.join(DATA);
    fs::rename(&new, &data).map_err(at(&data))
}

/// The first component of a path: the name in the volume itself.
fn top(path: &str) -> &str {
    path.split('/').next().unwrap_or(path)
}

/// Creates missing links. An existing file in a link's place, such as a mount point of another
/// volume, stays.
fn link(dir: &Path, payload: &Payload) -> Result<(), WriteError> {
    for (path, file) in payload {
        let name = top(path);
        let link = dir.join(name);
        if fs::symlink_metadata(&link).is_ok() {
            continue;
        }
        symlink(Path::new(DATA).join(name), &link).map_err(at(&link))?;
        if let Some(owner) = file.owner {
            lchown(&link, Some(owner), None).map_err(at(&link))?;
        }
    }
    Ok(())
}

/// Removes the links of names that no longer exist.
fn unlink(dir: &Path, payload: &Payload) -> Result<(), WriteError> {
    let names: BTreeSet<&str> = payload.keys().map(|path| top(path)).collect();
    for entry in entries(dir)? {
        let path = entry.path();
        let ours = fs::read_link(&path).is_ok_and(|target| target.starts_with(DATA));
        let name = entry.file_name();
        if ours && name.to_str().is_none_or(|name| !names.contains(name)) {
            fs::remove_file(&path).map_err(at(&path))?;
        }
    }
    Ok(())
}

/// Removes leftovers of earlier updates, also of interrupted ones: all directories but `keep`.
fn sweep(dir: &Path, keep: Option<&Path>) -> Result<(), WriteError> {
    for entry in entries(dir)? {
        let name = entry.file_name();
        let ours = name.to_str().is_some_and(|name| name.starts_with(".."));
        if !ours || name == DATA || keep.is_some_and(|keep| keep == Path::new(&name)) {
            continue;
        }
        let path = entry.path();
        let is_dir = entry.file_type().map_err(at(&path))?.is_dir();
        let removed = if is_dir {
            fs::remove_dir_all(&path)
        } else {
            fs::remove_file(&path)
        };
        removed.map_err(at(&path))?;
    }
    Ok(())
}

fn entries(dir: &Path) -> Result<Vec<fs::DirEntry>, WriteError> {
    fs::read_dir(dir)
        .and_then(Iterator::collect)
        .map_err(at(dir))
}

#[cfg(test)]
mod tests;
