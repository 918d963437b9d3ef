//! One look at a folder or a single file. Only files that changed are read; calls block.

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

/// What changes when a file changes: modification and change time in nanoseconds, size, device
/// and inode.
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

/// What the last look found.
#[derive(Debug, Default)]
pub(super) struct Known {
    /// Manifests by path. One without signature is read at each look.
    manifests: BTreeMap<Box<str>, Option<Signature>>,
    kind: Option<Kind>,
}

/// What the path is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A folder on this device.
    Folder { device: u64 },
    /// A single file.
    File,
}

/// What a look found, not settled yet.
#[derive(Debug)]
pub(super) struct Found(Result<Complete, Box<Failed>>);

#[derive(Debug)]
struct Complete {
    kind: Kind,
    entries: Vec<Entry>,
    /// A file changed while it was read.
    moving: bool,
}

#[derive(Debug)]
struct Entry {
    path: Box<str>,
    signature: Option<Signature>,
    content: Content,
}

#[derive(Debug)]
struct Failed {
    origin: Box<str>,
    problem: Problem,
}

impl Found {
    /// True if a file changed while it was read.
    pub(super) fn is_moving(&self) -> bool {
        self.0.as_ref().is_ok_and(|complete| complete.moving)
    }

    /// Manifests that were there and are not, or the path itself. It may be a moment in between.
    pub(super) fn missing(&self, known: &Known) -> Vec<Box<str>> {
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

    /// Takes it for true.
    pub(super) fn settle(self, known: &mut Known) -> Observation {
        match self.0 {
            Err(failed) => {
                let Failed { origin, problem } = *failed;
                Observation::Failed {
                    source: PodSource::File,
                    origin,
                    problem,
                }
            }
            Ok(Complete { kind, entries, .. }) => {
                let taken = |entry: &&Entry| !matches!(entry.content, Content::Skipped(_));
                *known = Known {
                    manifests: entries
                        .iter()
                        .filter(taken)
                        .map(|entry| (entry.path.clone(), entry.signature))
                        .collect(),
                    kind: Some(kind),
                };
                Observation::Looked {
                    source: PodSource::File,
                    single: kind == Kind::File,
                    manifests: entries.into_iter().map(|e| (e.path, e.content)).collect(),
                }
            }
        }
    }
}

/// Looks at `path`. Files named in `dirty` are read though nothing may show that they changed;
/// those named in `writing` are not read.
pub(super) fn look(
    path: &Path,
    known: &Known,
    dirty: &BTreeSet<OsString>,
    writing: &BTreeSet<OsString>,
) -> Found {
    let origin: Box<str> = path.to_string_lossy().into();
    let failed = |reason, message: String| {
        let problem = Problem::whole(reason, message);
        Box::new(Failed {
            origin: origin.clone(),
            problem,
        })
    };
    let hints = Hints {
        known,
        dirty,
        writing,
    };
    Found(match fs::metadata(path) {
        Ok(meta) if meta.is_dir() => folder(path, &meta, &hints)
            .map_err(|error| {
                failed(
                    Reason::Unreadable,
                    format!("the folder can't be read: {error}"),
                )
            })
            .and_then(|found| match found {
                Some(complete) => Ok(complete),
                None => Err(failed(
                    Reason::Missing,
                    "the folder is empty and no longer on the file system it was on; was it \
                     unmounted? Its pods stay as they are"
                        .to_owned(),
                )),
            }),
        Ok(meta) if meta.is_file() => {
            let name = path.file_name().unwrap_or_default().to_owned();
            let mut moving = false;
            let entries = hints
                .manifest(path, origin.clone(), &name, &mut moving)
                .into_iter();
            Ok(Complete {
                kind: Kind::File,
                entries: entries.collect(),
                moving,
            })
        }
        Ok(_) => Err(failed(
            Reason::NotAFile,
            "neither a folder nor a file".to_owned(),
        )),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            // A folder that is gone may come back; a file whose folder is there was removed.
            let parent = path
                .parent()
                .filter(|parent| !parent.as_os_str().is_empty());
            if known.kind == Some(Kind::File) && parent.is_none_or(Path::is_dir) {
                Ok(Complete {
                    kind: Kind::File,
                    entries: Vec::new(),
                    moving: false,
                })
            } else {
                let message = match known.kind {
                    None => "does not exist; waiting for it, and no running pod is ended before",
                    Some(_) => "no longer exists; its pods stay as they are until it is back",
                };
                Err(failed(Reason::Missing, message.to_owned()))
            }
        }
        Err(error) => Err(failed(
            Reason::Unreadable,
            format!("can't be looked at: {error}"),
        )),
    })
}

/// `None` if the folder seems to be the place where another file system was mounted.
fn folder(path: &Path, meta: &Metadata, hints: &Hints<'_>) -> io::Result<Option<Complete>> {
    let mut entries = Vec::new();
    let mut moving = false;
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
                entries.push(Entry {
                    path: shown,
                    signature: None,
                    content,
                });
            }
            None => entries.extend(hints.manifest(&path, shown, &name, &mut moving)),
        }
    }
    entries.sort_by(|a, b| a.path.cmp(&b.path));
    let empty = entries
        .iter()
        .all(|entry| matches!(entry.content, Content::Skipped(_)));
    let device = meta.dev();
    let moved = matches!(hints.known.kind, Some(Kind::Folder { device: was }) if was != device);
    if empty && moved && !hints.known.manifests.is_empty() {
        return Ok(None);
    }
    Ok(Some(Complete {
        kind: Kind::Folder { device },
        entries,
        moving,
    }))
}

struct Hints<'a> {
    known: &'a Known,
    dirty: &'a BTreeSet<OsString>,
    writing: &'a BTreeSet<OsString>,
}

impl Hints<'_> {
    /// What is found under a name that is taken for a manifest; `None` if it has just gone.
    fn manifest(
        &self,
        path: &Path,
        shown: Box<str>,
        name: &OsString,
        moving: &mut bool,
    ) -> Option<Entry> {
        let known = self.known.manifests.get(&shown).copied().flatten();
        let (signature, content) = match fs::metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                fs::symlink_metadata(path).ok()?;
                (None, unreadable("the link leads to nothing"))
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
                        Ok(Reading::Whole(bytes)) => (Some(signature), Content::Bytes(bytes)),
                        Ok(Reading::TooLarge) => (Some(signature), too_large()),
                        Ok(Reading::Moving) => {
                            *moving = true;
                            (None, Content::Unchanged)
                        }
                        Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
                        Err(error) => (None, unreadable(error)),
                    }
                }
            }
        };
        Some(Entry {
            path: shown,
            signature,
            content,
        })
    }
}

enum Reading {
    Whole(Vec<u8>),
    TooLarge,
    /// The file is not the one that was looked at, or changed on the way.
    Moving,
}

fn read(path: &Path, expected: &Signature) -> io::Result<Reading> {
    // It may have become a pipe since it was looked at: opening must not wait.
    let flags = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(flags)
        .open(path)?;
    let meta = file.metadata()?;
    if !meta.is_file() || Signature::of(&meta) != *expected {
        return Ok(Reading::Moving);
    }
    if meta.size() > MAX_MANIFEST_BYTES {
        return Ok(Reading::TooLarge);
    }
    let mut bytes = Vec::new();
    (&file)
        .take(MAX_MANIFEST_BYTES + 1)
        .read_to_end(&mut bytes)?;
    let same = Signature::of(&file.metadata()?) == *expected;
    Ok(if same {
        Reading::Whole(bytes)
    } else {
        Reading::Moving
    })
}

fn unreadable(why: impl std::fmt::Display) -> Content {
    Content::Refused(Problem::whole(
        Reason::Unreadable,
        format!("can't be read: {why}"),
    ))
}

fn too_large() -> Content {
    let message = "larger than 10 MiB; split it into several files";
    Content::Refused(Problem::whole(Reason::TooLarge, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Folder {
        dir: tempfile::TempDir,
        known: Known,
        dirty: BTreeSet<OsString>,
        writing: BTreeSet<OsString>,
    }

    impl Folder {
        fn new() -> Self {
            Self {
                dir: tempfile::tempdir().unwrap(),
                known: Known::default(),
                dirty: BTreeSet::new(),
                writing: BTreeSet::new(),
            }
        }

        fn look(&self) -> Found {
            look(self.dir.path(), &self.known, &self.dirty, &self.writing)
        }

        /// Name and content of each entry.
        fn settle(&mut self) -> Vec<(String, Content)> {
            let Observation::Looked { manifests, .. } = self.look().settle(&mut self.known) else {
                panic!("the folder can be read");
            };
            let name = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
            manifests
                .into_iter()
                .map(|(path, content)| (name(&path), content))
                .collect()
        }

        fn write(&self, name: &str, text: &str) {
            fs::write(self.dir.path().join(name), text).unwrap();
        }
    }

    fn entry(name: &str, content: Content) -> (String, Content) {
        (name.to_owned(), content)
    }

    fn bytes(text: &str) -> Content {
        Content::Bytes(text.into())
    }

    #[test]
    fn a_file_is_read_again_only_when_it_changed() {
        let mut folder = Folder::new();
        folder.write("b", "one");
        folder.write("a", "two");
        assert_eq!(
            folder.settle(),
            [entry("a", bytes("two")), entry("b", bytes("one"))]
        );
        assert_eq!(
            folder.settle(),
            [
                entry("a", Content::Unchanged),
                entry("b", Content::Unchanged)
            ]
        );
        folder.write("b", "three");
        assert_eq!(
            folder.settle(),
            [entry("a", Content::Unchanged), entry("b", bytes("three"))]
        );
        folder.dirty.insert("a".into());
        assert_eq!(folder.settle()[0], entry("a", bytes("two")));
    }

    #[test]
    fn what_is_no_manifest_is_listed_and_not_opened() {
        use rustix::fs::{CWD, FileType, Mode, mknodat};
        let mut folder = Folder::new();
        folder.write(".hidden", "x");
        folder.write("copy~", "x");
        fs::create_dir(folder.dir.path().join("dir")).unwrap();
        let pipe = folder.dir.path().join("pipe");
        mknodat(CWD, &pipe, FileType::Fifo, Mode::RWXU, 0).unwrap();
        let reasons = [
            (".hidden", Reason::Hidden),
            ("copy~", Reason::BackupFile),
            ("dir", Reason::Directory),
            ("pipe", Reason::NotAFile),
        ];
        let expected = reasons.map(|(name, reason)| entry(name, Content::Skipped(reason)));
        assert_eq!(folder.settle(), expected);
    }

    #[test]
    fn links_are_followed_and_dead_ones_reported() {
        let mut folder = Folder::new();
        let target = tempfile::NamedTempFile::new().unwrap();
        fs::write(target.path(), "one").unwrap();
        std::os::unix::fs::symlink(target.path(), folder.dir.path().join("link")).unwrap();
        assert_eq!(folder.settle(), [entry("link", bytes("one"))]);
        drop(target);
        let found = folder.settle();
        assert!(matches!(&found[0].1, Content::Refused(p) if p.reason == Reason::Unreadable));
    }

    #[test]
    fn a_file_of_more_than_ten_mebibytes_is_refused() {
        let mut folder = Folder::new();
        let file = fs::File::create(folder.dir.path().join("big")).unwrap();
        file.set_len(MAX_MANIFEST_BYTES + 1).unwrap();
        let found = folder.settle();
        assert!(matches!(&found[0].1, Content::Refused(p) if p.reason == Reason::TooLarge));
        assert_eq!(folder.settle(), [entry("big", Content::Unchanged)]);
        file.set_len(MAX_MANIFEST_BYTES).unwrap();
        assert!(matches!(&folder.settle()[0].1, Content::Bytes(_)));
    }

    #[test]
    fn a_file_that_is_being_written_is_left_alone() {
        let mut folder = Folder::new();
        folder.write("old", "one");
        folder.settle();
        folder.write("old", "half");
        folder.write("new", "half");
        folder.writing = ["old".into(), "new".into()].into();
        assert_eq!(
            folder.settle(),
            [
                entry("new", Content::Unchanged),
                entry("old", Content::Unchanged)
            ]
        );
        folder.writing.clear();
        assert_eq!(
            folder.settle(),
            [entry("new", bytes("half")), entry("old", bytes("half"))]
        );
    }

    #[test]
    fn what_is_missing_is_told_before_it_is_taken_for_true() {
        let mut folder = Folder::new();
        let missing = |folder: &Folder| folder.look().missing(&folder.known).len();
        folder.write("a", "one");
        assert_eq!(missing(&folder), 0);
        folder.settle();
        assert_eq!(missing(&folder), 0);
        fs::remove_file(folder.dir.path().join("a")).unwrap();
        assert_eq!(missing(&folder), 1);
        assert_eq!(folder.settle(), []);
        assert_eq!(missing(&folder), 0);
    }

    #[test]
    fn an_emptied_folder_has_no_pods_but_a_lost_file_system_says_nothing() {
        let mut folder = Folder::new();
        folder.write("a", "one");
        folder.settle();
        let path = folder.dir.path().to_owned();
        fs::remove_dir_all(&path).unwrap();
        let gone = folder.look().settle(&mut folder.known);
        assert!(
            matches!(gone, Observation::Failed { problem, .. } if problem.reason == Reason::Missing)
        );
        fs::create_dir(&path).unwrap();
        folder.known.kind = Some(Kind::Folder { device: 0 });
        let unmounted = folder.look().settle(&mut folder.known);
        assert!(
            matches!(unmounted, Observation::Failed { problem, .. } if problem.reason == Reason::Missing)
        );
        let device = fs::metadata(&path).unwrap().dev();
        folder.known.kind = Some(Kind::Folder { device });
        assert_eq!(folder.settle(), []);
    }

    #[test]
    fn a_single_file_may_have_any_name_and_be_removed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(".pod.tmp");
        let none = BTreeSet::new();
        let mut known = Known::default();
        let mut look = || look(&path, &known, &none, &none).settle(&mut known);
        assert!(
            matches!(look(), Observation::Failed { .. }),
            "never seen: it may still come"
        );
        fs::write(&path, "one").unwrap();
        let origin: Box<str> = path.to_string_lossy().into();
        let looked = |manifests| Observation::Looked {
            source: PodSource::File,
            single: true,
            manifests,
        };
        assert_eq!(look(), looked(vec![(origin, bytes("one"))]));
        fs::remove_file(&path).unwrap();
        assert_eq!(look(), looked(vec![]));
        assert_eq!(look(), looked(vec![]));
        dir.close().unwrap();
        assert!(matches!(look(), Observation::Failed { .. }));
    }
}
