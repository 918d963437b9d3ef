//! The file of the log: appended to, rotated when it is large; rotated files are removed when they
//! are old.

use std::{
    ffi::{OsStr, OsString},
    fs::{DirBuilder, File},
    io::{self, Write as _},
    os::{
        fd::OwnedFd,
        unix::{
            ffi::OsStrExt as _,
            fs::{DirBuilderExt as _, FileExt as _},
        },
    },
    path::{Path, PathBuf},
    time::Duration,
};

use jiff::{SignedDuration, Timestamp, civil::DateTime, tz::TimeZone};
use rustix::{
    fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, RenameFlags},
    io::Errno,
};

/// When a file of the log is rotated, and how long it is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rotation {
    /// Maximum size of a file, unless a single event is longer.
    pub max_bytes: u64,
    /// Number of rotated files to keep; 0 means all.
    pub max_backups: usize,
    /// Age after which rotated files are removed; zero means never.
    pub max_age: Duration,
}

/// The time in the name of a rotated file, in UTC, to which milliseconds are appended.
const STAMP: &str = "%Y-%m-%dT%H-%M-%S";

/// The log's file.
#[derive(Debug)]
pub(super) struct LogFile {
    path: PathBuf,
    rotation: Rotation,
    open: Option<OpenFile>,
}

#[derive(Debug)]
struct OpenFile {
    directory: OwnedFd,
    file: File,
    length: u64,
}

impl LogFile {
    /// Opens the file, or creates it.
    pub(super) fn open(path: &Path, rotation: Rotation, now: Timestamp) -> io::Result<Self> {
        let mut log = Self {
            path: path.to_owned(),
            rotation,
            open: None,
        };
        let open = open(path)?;
        log.remove_old(&open.directory, now);
        log.open = Some(open);
        Ok(log)
    }

    /// Appends whole lines. After an error none of them is in the file.
    pub(super) fn append(&mut self, lines: &[u8], now: Timestamp) -> io::Result<()> {
        let mut open = match self.open.take() {
            Some(open) if is_linked(&open.file) => open,
            // The file was removed, or could not be opened before.
            _ => open(&self.path)?,
        };
        let added = u64::try_from(lines.len()).unwrap_or(u64::MAX);
        if open.length > 0 && open.length.saturating_add(added) > self.rotation.max_bytes {
            open = self.rotate(open, now)?;
        }
        let written = open.file.write_all(lines);
        match &written {
            Ok(()) => open.length += added,
            // A partial line would spoil the next one.
            Err(_) => open.file.set_len(open.length)?,
        }
        self.open = Some(open);
        written
    }

    fn rotate(&self, open: OpenFile, now: Timestamp) -> io::Result<OpenFile> {
        let directory = open.directory;
        let name = name(&self.path)?;
        let names = list(&directory)?;
        let newest = names
            .iter()
            .filter_map(|found| put_aside(name, found))
            .max();
        let mut at = later_than(now, newest);
        let mut kept = Err(Errno::EXIST);
        for _ in 0..100 {
            let backup = backup_name(name, at);
            let keep = RenameFlags::NOREPLACE;
            kept = rustix::fs::renameat_with(&directory, name, &directory, &backup, keep);
            if kept != Err(Errno::EXIST) {
                break;
            }
            // Another program also creates files there.
            at = later_than(now, Some(at));
        }
        kept?;
        let opened = open_in(directory, name)?;
        self.remove_old(&opened.directory, now);
        Ok(opened)
    }

    /// Removes rotated files beyond the limits; a file that can't be removed is retried next time.
    fn remove_old(&self, directory: &OwnedFd, now: Timestamp) {
        let Ok(name) = name(&self.path) else { return };
        let names = match list(directory) {
            Ok(names) => names,
            Err(error) => {
                tracing::debug!(%error, "Cannot list rotated audit logs");
                return;
            }
        };
        for old in expired(name, &names, &self.rotation, now) {
            if let Err(error) = rustix::fs::unlinkat(directory, old, AtFlags::empty()) {
                tracing::warn!(%error, file = %old.display(), "Cannot remove a rotated audit log");
            }
        }
    }
}

fn name(path: &Path) -> io::Result<&OsStr> {
    path.file_name()
        .ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))
}

fn open(path: &Path) -> io::Result<OpenFile> {
    let parent = path.parent().unwrap_or(Path::new("/"));
    let mut builder = DirBuilder::new();
    builder.recursive(true).mode(0o700).create(parent)?;
    let flags = OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::RDONLY;
    let directory = rustix::fs::openat(CWD, parent, flags, Mode::empty())?;
    open_in(directory, name(path)?)
}

fn open_in(directory: OwnedFd, name: &OsStr) -> io::Result<OpenFile> {
    // NONBLOCK: opening a FIFO of that name would block the start.
    let flags = OFlags::RDWR
        | OFlags::APPEND
        | OFlags::CREATE
        | OFlags::NOFOLLOW
        | OFlags::NONBLOCK
        | OFlags::CLOEXEC;
    let mode = Mode::RUSR | Mode::WUSR;
    let file = rustix::fs::openat(&directory, name, flags, mode)?;
    let stat = rustix::fs::fstat(&file)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(io::Error::other("it is not a regular file"));
    }
    // The file may exist already, readable for others.
    rustix::fs::fchmod(&file, mode)?;
    let file = File::from(file);
    let mut length = u64::try_from(stat.st_size).unwrap_or_default();
    let mut last = [0];
    let read = length.checked_sub(1).map(|at| file.read_at(&mut last, at));
    // A power loss can leave a partial line; if there is no space for even this byte, the first
    // event has none either, and reports it.
    if matches!(read, Some(Ok(1))) && last != *b"\n" && (&file).write_all(b"\n").is_ok() {
        length += 1;
    }
    Ok(OpenFile {
        directory,
        file,
        length,
    })
}

fn is_linked(file: &File) -> bool {
    rustix::fs::fstat(file).is_ok_and(|stat| stat.st_nlink > 0)
}

fn list(directory: &OwnedFd) -> io::Result<Vec<OsString>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(directory)? {
        names.push(OsStr::from_bytes(entry?.file_name().to_bytes()).to_owned());
    }
    Ok(names)
}

/// The time for the name of a file that is rotated now. Names are ordered by age, also of two
/// rotations in one millisecond and after the clock was set back.
fn later_than(now: Timestamp, newest: Option<Timestamp>) -> Timestamp {
    let next = newest.and_then(|at| at.checked_add(SignedDuration::from_millis(1)).ok());
    next.map_or(now, |next| next.max(now))
}

/// `audit.log` is rotated to `audit-2026-03-01T12-00-00.123.log`, as the API server names it.
fn backup_name(name: &OsStr, at: Timestamp) -> OsString {
    let (stem, extension) = parts(name);
    let at = at.to_zoned(TimeZone::UTC);
    let milliseconds = at.millisecond();
    let mut backup = stem.to_owned();
    backup.push(format!("-{}.{milliseconds:03}", at.strftime(STAMP)));
    backup.push(extension);
    backup
}

/// The name up to its last dot, and the rest.
fn parts(name: &OsStr) -> (&OsStr, &OsStr) {
    let bytes = name.as_bytes();
    let dot = bytes.iter().rposition(|byte| *byte == b'.');
    let (stem, extension) = bytes.split_at(dot.filter(|at| *at > 0).unwrap_or(bytes.len()));
    (OsStr::from_bytes(stem), OsStr::from_bytes(extension))
}

/// When the file of that name was rotated; `None` for files that are not rotated files of this log.
fn put_aside(name: &OsStr, candidate: &OsStr) -> Option<Timestamp> {
    let (stem, extension) = parts(name);
    let rest = candidate.as_bytes().strip_prefix(stem.as_bytes())?;
    let rest = rest.strip_prefix(b"-")?;
    let rest = rest.strip_suffix(extension.as_bytes())?;
    let (time, fraction) = std::str::from_utf8(rest).ok()?.split_once('.')?;
    let is_number = !fraction.is_empty() && fraction.bytes().all(|byte| byte.is_ascii_digit());
    let time = DateTime::strptime(STAMP, time).ok().filter(|_| is_number)?;
    let time = time.to_zoned(TimeZone::UTC).ok()?.timestamp();
    let milliseconds: i64 = fraction.parse().ok()?;
    time.checked_add(SignedDuration::from_millis(milliseconds.min(999)))
        .ok()
}

/// The rotated files to remove.
fn expired<'a>(
    name: &OsStr,
    names: &'a [OsString],
    rotation: &Rotation,
    now: Timestamp,
) -> Vec<&'a OsStr> {
    let mut old: Vec<(Timestamp, &OsStr)> = names
        .iter()
        .filter_map(|found| Some((put_aside(name, found)?, found.as_os_str())))
        .collect();
    old.sort_by(|one, other| other.cmp(one));
    let keeps = match rotation.max_backups {
        0 => usize::MAX,
        count => count,
    };
    let age = SignedDuration::try_from(rotation.max_age).unwrap_or(SignedDuration::MAX);
    let too_old = |at: &Timestamp| !age.is_zero() && now.duration_since(*at) > age;
    old.into_iter()
        .enumerate()
        .filter(|(index, (at, _))| *index >= keeps || too_old(at))
        .map(|(_, (_, found))| found)
        .collect()
}

#[cfg(test)]
mod tests;
