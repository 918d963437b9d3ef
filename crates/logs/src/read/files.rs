//! The files of one log: the current one and the rotated ones. Calls block.

use std::{
    fs::{self, File, OpenOptions},
    io,
    os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
    sync::Arc,
};

use parking_lot::Mutex;

use super::{LogError, gunzip::Gunzip};
use crate::layout::{COMPRESSED, Rotated, rotated};

/// Maximum number of rotated files to open, the newest ones. Far more than are normally kept; a
/// container that can write to the directory must not exhaust the agent's descriptors.
const MAX_ROTATED: usize = 1000;

/// What the kernel adds to the name of a deleted file, proc_pid_fd(5).
const DELETED: &str = " (deleted)";

/// An open log file.
#[derive(Debug, Clone)]
pub(super) struct LogFile {
    file: Arc<File>,
    identity: (u64, u64),
    /// For a compressed file.
    gunzip: Option<Arc<Mutex<Gunzip>>>,
}

impl LogFile {
    /// Opens a log. A symbolic link is rejected: a container that can write to the log directory
    /// could otherwise read any file of the node.
    pub(super) fn open(path: &Path) -> Result<Self, LogError> {
        let failed = |source: io::Error| LogError::Open {
            path: path.to_owned(),
            source,
        };
        let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(flags.bits().cast_signed())
            .open(path)
            .map_err(|error| match rustix::io::Errno::from_io_error(&error) {
                Some(rustix::io::Errno::LOOP) => LogError::NotAFile(path.to_owned()),
                _ => failed(error),
            })?;
        let meta = file.metadata().map_err(failed)?;
        if !meta.is_file() {
            return Err(LogError::NotAFile(path.to_owned()));
        }
        Ok(Self {
            file: Arc::new(file),
            identity: (meta.dev(), meta.ino()),
            gunzip: None,
        })
    }

    /// Opens a rotated file that may be compressed.
    fn open_rotated(directory: &Path, name: &str, form: Rotated<'_>) -> Result<Self, LogError> {
        let mut file = Self::open(&directory.join(name))?;
        if let Rotated::Compressed(_) = form {
            file.gunzip = Some(Arc::new(Mutex::new(Gunzip::new(Arc::clone(&file.file)))));
        }
        Ok(file)
    }

    /// True for a file that is complete and can only be read from its beginning.
    pub(super) fn is_compressed(&self) -> bool {
        self.gunzip.is_some()
    }

    /// True if the file has fewer bytes than that.
    pub(super) fn is_shorter_than(&self, offset: u64) -> io::Result<bool> {
        Ok(!self.is_compressed() && self.len()? < offset)
    }

    /// Current size in bytes, on disk.
    pub(super) fn len(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    /// Reads at an offset; fewer bytes than requested mean the end. In a compressed file, an offset
    /// counts uncompressed bytes and is where the last read ended.
    pub(super) fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        if let Some(gunzip) = &self.gunzip {
            return gunzip.lock().read_at(offset, into);
        }
        let mut filled = 0;
        while filled < into.len() {
            match self
                .file
                .read_at(&mut into[filled..], offset + filled as u64)
            {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(filled)
    }

    /// A path to this file, even after a rename.
    pub(super) fn descriptor_path(&self) -> PathBuf {
        use std::os::fd::AsRawFd;
        PathBuf::from(format!("/proc/self/fd/{}", self.file.as_raw_fd()))
    }

    /// The current name of this file, or its name when it was deleted.
    fn name_now(&self) -> Option<String> {
        let path = fs::read_link(self.descriptor_path()).ok()?;
        let name = path.file_name()?.to_str()?;
        Some(name.strip_suffix(DELETED).unwrap_or(name).to_owned())
    }

    /// True if `path` refers to this file.
    pub(super) fn is_at(&self, path: &Path) -> bool {
        fs::symlink_metadata(path).is_ok_and(|meta| (meta.dev(), meta.ino()) == self.identity)
    }
}

/// Opens a log, oldest file first. The last one is the current one.
pub(super) fn open_all(path: &Path, which: FileSelection) -> Result<Vec<LogFile>, LogError> {
    let current = LogFile::open(path)?;
    let mut files = Vec::new();
    if which != FileSelection::Current {
        // A file that is being compressed or removed is skipped.
        files = open_rotated(path, |form: Rotated<'_>| {
            which == FileSelection::All || matches!(form, Rotated::Plain(_))
        });
        // The log may have been rotated between the two steps.
        files.retain(|file| file.identity != current.identity);
    }
    files.push(current);
    Ok(files)
}

/// The files of a log to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FileSelection {
    /// The current one.
    Current,
    /// Those that can be read at any offset: the current one and uncompressed rotated ones.
    Plain,
    /// Compressed ones, too.
    All,
}

/// The file that was written after `file` was rotated: the next rotated one, else the current one.
/// `None` while `file` is the current one or not replaced yet.
pub(super) fn successor(path: &Path, file: &LogFile) -> Option<LogFile> {
    if file.is_at(path) {
        return None;
    }
    let own = file.name_now()?;
    let log = path.file_name()?.to_str()?;
    let rotated_at = rotated(log, &own).map(Rotated::suffix);
    let mut next = open_rotated(path, |form: Rotated<'_>| {
        rotated_at.is_some_and(|own| form.suffix() > own)
    });
    next.extend(LogFile::open(path));
    next.into_iter().find(|next| next.identity != file.identity)
}

/// Opens the rotated files of `path` of the wanted forms, oldest first. If a file exists both
/// plain and compressed, the plain one is opened: it is complete while it exists.
fn open_rotated(path: &Path, wanted: impl Fn(Rotated<'_>) -> bool) -> Vec<LogFile> {
    let (Some(directory), Some(log)) = (path.parent(), path.file_name().and_then(|n| n.to_str()))
    else {
        return Vec::new();
    };
    let Ok(entries) = fs::read_dir(directory) else {
        return Vec::new();
    };
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| match rotated(log, name) {
            Some(Rotated::Partial(_)) | None => false,
            Some(form) => wanted(form),
        })
        .collect();
    // A plain name comes right before the same with `.gz`.
    names.sort();
    names.drain(..names.len().saturating_sub(MAX_ROTATED));
    let mut files = Vec::new();
    let mut last = String::new();
    for name in names {
        let Some(form) = rotated(log, &name).filter(|form| form.suffix() != last) else {
            continue;
        };
        // If a plain file was compressed since it was listed, its other name may not be listed.
        let opened = LogFile::open_rotated(directory, &name, form).or_else(|_| {
            let compressed = format!("{log}.{}{COMPRESSED}", form.suffix());
            let form = Rotated::Compressed(form.suffix());
            match wanted(form) {
                true => LogFile::open_rotated(directory, &compressed, form),
                false => Err(LogError::NotAFile(directory.join(compressed))),
            }
        });
        if let Ok(file) = opened {
            form.suffix().clone_into(&mut last);
            files.push(file);
        }
    }
    files
}

#[cfg(test)]
mod tests;
