//! The files of one log: the current one and the plain ones that rotation put aside. Calls block.

use std::{
    fs::{self, File, OpenOptions},
    io,
    os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
    sync::Arc,
};

use super::LogError;
use crate::layout::is_rotation_suffix;

/// An open log file.
#[derive(Debug, Clone)]
pub(super) struct LogFile {
    file: Arc<File>,
    identity: (u64, u64),
}

impl LogFile {
    /// Opens a log. A symbolic link is refused: a container that may write to the log folder could
    /// otherwise have any file of the node read to it.
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
        })
    }

    /// Bytes in the file now.
    pub(super) fn len(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    /// Reads at an offset; fewer bytes than asked for means the end.
    pub(super) fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
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

    /// A path that names this very file, whatever it is called by now.
    pub(super) fn descriptor_path(&self) -> PathBuf {
        use std::os::fd::AsRawFd;
        PathBuf::from(format!("/proc/self/fd/{}", self.file.as_raw_fd()))
    }

    /// True if `path` names this very file.
    pub(super) fn is_at(&self, path: &Path) -> bool {
        fs::symlink_metadata(path).is_ok_and(|meta| (meta.dev(), meta.ino()) == self.identity)
    }
}

/// Opens a log, oldest file first. The last one is the current one.
pub(super) fn open_all(path: &Path, rotated: bool) -> Result<Vec<LogFile>, LogError> {
    let current = LogFile::open(path)?;
    let mut files = Vec::new();
    if rotated {
        // One that is compressed or removed at this moment is no error: its time is over.
        files.extend(
            rotated_paths(path)
                .iter()
                .filter_map(|path| LogFile::open(path).ok()),
        );
        // Rotation may have come between the two steps.
        files.retain(|file| file.identity != current.identity);
    }
    files.push(current);
    Ok(files)
}

/// The file that holds what was written after `file` was put aside: the next rotated one, else the
/// current one. `None` while `file` is the current one or nothing has taken its place yet.
pub(super) fn successor(path: &Path, file: &LogFile) -> Option<LogFile> {
    if file.is_at(path) {
        return None;
    }
    let rotated = rotated_paths(path);
    // Rotation compresses and removes the oldest first. If `file` is no longer there, all plain
    // files that still are came after it.
    let after = rotated
        .iter()
        .position(|path| file.is_at(path))
        .map_or(0, |at| at + 1);
    let next = rotated[after..].iter().map(PathBuf::as_path).chain([path]);
    next.filter_map(|path| LogFile::open(path).ok())
        .find(|next| next.identity != file.identity)
}

/// The plain files that rotation made of `path`, oldest first.
fn rotated_paths(path: &Path) -> Vec<PathBuf> {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name().and_then(|n| n.to_str()))
    else {
        return Vec::new();
    };
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut found: Vec<PathBuf> = entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|found| {
            let suffix = found
                .strip_prefix(name)
                .and_then(|rest| rest.strip_prefix('.'));
            suffix.is_some_and(is_rotation_suffix)
        })
        .map(|name| folder.join(name))
        .collect();
    found.sort();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content(file: &LogFile) -> String {
        let mut bytes = vec![0; 100];
        let read = file.read_at(0, &mut bytes).unwrap();
        String::from_utf8(bytes[..read].to_vec()).unwrap()
    }

    #[test]
    fn a_log_is_its_rotated_plain_files_and_the_current_one() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("0.log");
        for (name, text) in [
            ("0.log", "now"),
            ("0.log.20240102-000000", "second"),
            ("0.log.20240101-000000", "first"),
            ("0.log.20231231-000000.gz", "packed"),
            ("0.log.20240103-000000.tmp", "half made"),
            ("0.log.bak", "a copy"),
            ("10.log.20240101-000000", "another attempt"),
        ] {
            fs::write(dir.path().join(name), text).unwrap();
        }
        let texts = |rotated| -> Vec<String> {
            open_all(&path, rotated)
                .unwrap()
                .iter()
                .map(content)
                .collect()
        };
        assert_eq!(texts(true), ["first", "second", "now"]);
        assert_eq!(texts(false), ["now"]);
    }

    #[test]
    fn the_chain_goes_through_every_rotation() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("0.log");
        fs::write(&path, "a").unwrap();
        let a = LogFile::open(&path).unwrap();
        assert!(successor(&path, &a).is_none());
        fs::rename(&path, dir.path().join("0.log.20240101-000000")).unwrap();
        assert!(
            successor(&path, &a).is_none(),
            "the runtime has not made the new file yet"
        );
        fs::write(&path, "b").unwrap();
        fs::rename(&path, dir.path().join("0.log.20240101-000010")).unwrap();
        fs::write(&path, "c").unwrap();
        let b = successor(&path, &a).unwrap();
        assert_eq!(content(&b), "b");
        let c = successor(&path, &b).unwrap();
        assert_eq!(content(&c), "c");
        assert!(successor(&path, &c).is_none());
        fs::remove_file(dir.path().join("0.log.20240101-000000")).unwrap();
        assert_eq!(content(&successor(&path, &a).unwrap()), "b");
    }

    #[test]
    fn links_and_pipes_are_refused_without_being_opened() {
        let dir = tempfile::tempdir().unwrap();
        let link = dir.path().join("0.log");
        std::os::unix::fs::symlink("/etc/hostname", &link).unwrap();
        assert!(matches!(LogFile::open(&link), Err(LogError::NotAFile(_))));
        let pipe = dir.path().join("1.log");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &pipe,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR,
            0,
        )
        .unwrap();
        assert!(matches!(LogFile::open(&pipe), Err(LogError::NotAFile(_))));
        let gone = LogFile::open(&dir.path().join("2.log"));
        assert!(matches!(gone, Err(LogError::Open { .. })));
    }
}
