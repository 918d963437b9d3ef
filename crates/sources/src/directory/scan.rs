//! One scan of a directory or a single file. Reads only changed files; the calls block.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsString,
    fs::{self, Metadata, OpenOptions},
    io::{self, Read},
    os::unix::fs::{MetadataExt, OpenOptionsExt},
    path::Path,
};

use rubelet_api::pod::PodSource;

use crate::{
    names,
    state::{Content, MAX_MANIFEST_BYTES, Observation},
    status::{Problem, Reason},
};

/// The attributes that differ when a file has changed: modification and change time in nanoseconds,
/// size, device and inode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Signature([i128; 5]);

impl Signature {
    fn of(meta: &Metadata) -> Self {
        let time =
            |seconds: i64, nanos: i64| i128::from(seconds) * 1_000_000_000 + i128::from(nanos);
        Self([
            time(meta.mtime(), meta.mtime_nsec()),
            time(meta.ctime(), meta.ctime_nsec()),
            meta.size().into(),
            meta.dev().into(),
            meta.ino().into(),
        ])
    }
}

/// The result of the last scan, to compare the next one with.
#[derive(Debug, Default)]
pub(super) struct LastScan {
    /// Manifests by path. One without signature is read at each scan.
    manifests: BTreeMap<Box<str>, Option<Signature>>,
    kind: Option<PathKind>,
}

/// The kind of the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PathKind {
    /// A directory on this device.
    Directory { device: u64 },
    /// A single file.
    File,
}

/// The result of a scan, not accepted yet.
#[derive(Debug)]
pub(super) struct ScanResult(Result<CompleteScan, Box<ScanFailure>>);

#[derive(Debug)]
struct CompleteScan {
    kind: PathKind,
    entries: Vec<ScannedFile>,
    /// A file changed while it was read.
    unstable: bool,
}

#[derive(Debug)]
struct ScannedFile {
    path: Box<str>,
    signature: Option<Signature>,
    content: Content,
}

#[derive(Debug)]
struct ScanFailure {
    origin: Box<str>,
    problem: Problem,
}

impl ScanResult {
    /// True if a file changed while it was read.
    pub(super) fn is_unstable(&self) -> bool {
        self.0.as_ref().is_ok_and(|complete| complete.unstable)
    }

    /// Missing manifests, or the missing path itself. A program may be replacing them.
    pub(super) fn missing(&self, known: &LastScan) -> Vec<Box<str>> {
        match &self.0 {
            Ok(complete) => {
                let found: BTreeSet<&str> = complete.entries.iter().map(|e| &*e.path).collect();
                known
                    .manifests
                    .keys()
                    .filter(|path| !found.contains(&***path))
                    .cloned()
                    .collect()
            }
            Err(failed) => known.kind.iter().map(|_| failed.origin.clone()).collect(),
        }
    }

    /// Accepts the result. Files named in `removed` were removed since the last scan.
    pub(super) fn accept(self, known: &mut LastScan, removed: &BTreeSet<OsString>) -> Observation {
        match self.0 {
            Err(failed) => {
                let ScanFailure { origin, problem } = *failed;
                Observation::Failed {
                    source: PodSource::File,
                    origin,
                    problem,
                }
            }
            Ok(CompleteScan { kind, entries, .. }) => {
                let taken = |entry: &&ScannedFile| !matches!(entry.content, Content::Skipped(_));
                let before = std::mem::take(known);
                *known = LastScan {
                    manifests: entries
                        .iter()
                        .filter(taken)
                        .map(|entry| (entry.path.clone(), entry.signature))
                        .collect(),
                    kind: Some(kind),
                };
                let was_removed = |path: &str| {
                    let name = Path::new(path).file_name();
                    before.manifests.contains_key(path)
                        && name.is_some_and(|name| removed.contains(name))
                };
                let content = |entry: ScannedFile| match entry.content {
                    Content::Bytes(bytes) if was_removed(&entry.path) => {
                        (entry.path, Content::Recreated(bytes))
                    }
                    other => (entry.path, other),
                };
                Observation::Scanned {
                    source: PodSource::File,
                    single: kind == PathKind::File,
                    manifests: entries.into_iter().map(content).collect(),
                }
            }
        }
    }
}

/// Scans `path`. Files named in `dirty` are read even if their attributes are unchanged; those
/// named in `writing` are not read.
pub(super) fn scan(
    path: &Path,
    known: &LastScan,
    dirty: &BTreeSet<OsString>,
    writing: &BTreeSet<OsString>,
) -> ScanResult {
    let origin: Box<str> = path.to_string_lossy().into();
    let failed = |reason, message: String| {
        let problem = Problem::whole(reason, message);
        Box::new(ScanFailure {
            origin: origin.clone(),
            problem,
        })
    };
    let hints = ScanInputs {
        known,
        dirty,
        writing,
    };
    ScanResult(match fs::metadata(path) {
        Ok(meta) if meta.is_dir() => directory(path, &meta, &hints)
            .map_err(|error| {
                failed(
                    Reason::Unreadable,
                    format!("cannot read the directory: {error}"),
                )
            })
            .and_then(|found| match found {
                Some(complete) => Ok(complete),
                None => Err(failed(
                    Reason::Missing,
                    "the directory is empty and on another file system than before; was it unmounted? \
                     Its pods stay unchanged"
                        .to_owned(),
                )),
            }),
        Ok(meta) if meta.is_file() => {
            let name = path.file_name().unwrap_or_default().to_owned();
            let mut unstable = false;
            let entries = hints
                .manifest(path, origin.clone(), &name, &mut unstable)
                .into_iter();
            Ok(CompleteScan {
                kind: PathKind::File,
                entries: entries.collect(),
                unstable,
            })
        }
        Ok(_) => Err(failed(
            Reason::NotAFile,
            "neither a directory nor a file".to_owned(),
        )),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            // A missing directory may come back; a missing file in an existing directory was
            // removed.
            let parent = path
                .parent()
                .filter(|parent| !parent.as_os_str().is_empty());
            if known.kind == Some(PathKind::File) && parent.is_none_or(Path::is_dir) {
                Ok(CompleteScan {
                    kind: PathKind::File,
                    entries: Vec::new(),
                    unstable: false,
                })
            } else {
                let message = match known.kind {
                    None => "does not exist yet; no running pod is stopped until it can be read",
                    Some(_) => "no longer exists; its pods stay unchanged until it is back",
                };
                Err(failed(Reason::Missing, message.to_owned()))
            }
        }
        Err(error) => Err(failed(
            Reason::Unreadable,
            format!("cannot be read: {error}"),
        )),
    })
}

/// `None` if the directory seems to be an empty mount point whose file system is unmounted.
fn directory(
    path: &Path,
    meta: &Metadata,
    hints: &ScanInputs<'_>,
) -> io::Result<Option<CompleteScan>> {
    let mut entries = Vec::new();
    let mut unstable = false;
    for entry in fs::read_dir(path)? {
        let name = entry?.file_name();
        let path = path.join(&name);
        let shown: Box<str> = path.to_string_lossy().into();
        let skip = match name.to_str() {
            None => Some(Reason::BadName),
            Some(name) => names::skipped(name),
        };
        match skip {
            Some(reason) => {
                let content = Content::Skipped(reason);
                entries.push(ScannedFile {
                    path: shown,
                    signature: None,
                    content,
                });
            }
            None => entries.extend(hints.manifest(&path, shown, &name, &mut unstable)),
        }
    }
    entries.sort_by(|a, b| a.path.cmp(&b.path));
    let empty = entries
        .iter()
        .all(|entry| matches!(entry.content, Content::Skipped(_)));
    let device = meta.dev();
    let moved =
        matches!(hints.known.kind, Some(PathKind::Directory { device: was }) if was != device);
    if empty && moved && !hints.known.manifests.is_empty() {
        return Ok(None);
    }
    Ok(Some(CompleteScan {
        kind: PathKind::Directory { device },
        entries,
        unstable,
    }))
}

struct ScanInputs<'a> {
    known: &'a LastScan,
    dirty: &'a BTreeSet<OsString>,
    writing: &'a BTreeSet<OsString>,
}

impl ScanInputs<'_> {
    /// Reads one manifest file; `None` if it has just disappeared.
    fn manifest(
        &self,
        path: &Path,
        shown: Box<str>,
        name: &OsString,
        unstable: &mut bool,
    ) -> Option<ScannedFile> {
        let known = self.known.manifests.get(&shown).copied().flatten();
        let (signature, content) = match fs::metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                fs::symlink_metadata(path).ok()?;
                (None, unreadable("the symbolic link is broken"))
            }
            Err(error) => (None, unreadable(error)),
            Ok(meta) if meta.is_dir() => (None, Content::Skipped(Reason::Directory)),
            Ok(meta) if !meta.is_file() => (None, Content::Skipped(Reason::NotAFile)),
            Ok(_) if self.writing.contains(name) => (known, Content::Unchanged),
            Ok(meta) => {
                let signature = Signature::of(&meta);
                if known == Some(signature) && !self.dirty.contains(name) {
                    (known, Content::Unchanged)
                } else {
                    match read(path, &signature) {
                        Ok(ReadOutcome::Whole(bytes)) => (Some(signature), Content::Bytes(bytes)),
                        Ok(ReadOutcome::TooLarge) => (Some(signature), too_large()),
                        Ok(ReadOutcome::Unstable) => {
                            *unstable = true;
                            (None, Content::Unchanged)
                        }
                        Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
                        Err(error) => (None, unreadable(error)),
                    }
                }
            }
        };
        Some(ScannedFile {
            path: shown,
            signature,
            content,
        })
    }
}

enum ReadOutcome {
    Whole(Vec<u8>),
    TooLarge,
    /// The file was replaced after its inspection, or changed during the read.
    Unstable,
}

fn read(path: &Path, expected: &Signature) -> io::Result<ReadOutcome> {
    // It may have become a FIFO: opening must not block.
    let flags = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(flags)
        .open(path)?;
    let meta = file.metadata()?;
    if !meta.is_file() || Signature::of(&meta) != *expected {
        return Ok(ReadOutcome::Unstable);
    }
    if meta.size() > MAX_MANIFEST_BYTES {
        return Ok(ReadOutcome::TooLarge);
    }
    let mut bytes = Vec::new();
    (&file)
        .take(MAX_MANIFEST_BYTES + 1)
        .read_to_end(&mut bytes)?;
    let same = Signature::of(&file.metadata()?) == *expected;
    Ok(if same {
        ReadOutcome::Whole(bytes)
    } else {
        ReadOutcome::Unstable
    })
}

fn unreadable(why: impl std::fmt::Display) -> Content {
    Content::Refused(Problem::whole(
        Reason::Unreadable,
        format!("cannot be read: {why}"),
    ))
}

fn too_large() -> Content {
    let message = "larger than 10 MiB; split it into several files";
    Content::Refused(Problem::whole(Reason::TooLarge, message))
}

#[cfg(test)]
mod tests;
