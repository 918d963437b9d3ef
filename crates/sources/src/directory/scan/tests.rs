//! Tests of `scan`.

use super::*;

struct Directory {
    dir: tempfile::TempDir,
    known: LastScan,
    dirty: BTreeSet<OsString>,
    writing: BTreeSet<OsString>,
    removed: BTreeSet<OsString>,
}

impl Directory {
    fn new() -> Self {
        Self {
            dir: tempfile::tempdir().unwrap(),
            known: LastScan::default(),
            dirty: BTreeSet::new(),
            writing: BTreeSet::new(),
            removed: BTreeSet::new(),
        }
    }

    fn scan(&self) -> ScanResult {
        scan(self.dir.path(), &self.known, &self.dirty, &self.writing)
    }

    /// Name and content of each entry.
    fn accept(&mut self) -> Vec<(String, Content)> {
        let accepted = self.scan().accept(&mut self.known, &self.removed);
        let Observation::Scanned { manifests, .. } = accepted else {
            panic!("the directory can be read");
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
    let mut directory = Directory::new();
    directory.write("b", "one");
    directory.write("a", "two");
    assert_eq!(
        directory.accept(),
        [entry("a", bytes("two")), entry("b", bytes("one"))]
    );
    assert_eq!(
        directory.accept(),
        [
            entry("a", Content::Unchanged),
            entry("b", Content::Unchanged)
        ]
    );
    directory.write("b", "three");
    assert_eq!(
        directory.accept(),
        [entry("a", Content::Unchanged), entry("b", bytes("three"))]
    );
    directory.dirty.insert("a".into());
    assert_eq!(directory.accept()[0], entry("a", bytes("two")));
}

#[test]
fn a_file_that_was_removed_in_between_is_another_one() {
    let mut directory = Directory::new();
    directory.write("a", "one");
    directory.removed.insert("a".into());
    directory.dirty.insert("a".into());
    assert_eq!(directory.accept(), [entry("a", bytes("one"))], "it is new");
    let recreated = Content::Recreated("one".into());
    assert_eq!(directory.accept(), [entry("a", recreated)]);
    directory.removed.clear();
    assert_eq!(directory.accept(), [entry("a", bytes("one"))]);
}

#[test]
fn what_is_no_manifest_is_listed_and_not_opened() {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    let mut directory = Directory::new();
    directory.write(".hidden", "x");
    directory.write("copy~", "x");
    fs::create_dir(directory.dir.path().join("dir")).unwrap();
    let pipe = directory.dir.path().join("pipe");
    mknodat(CWD, &pipe, FileType::Fifo, Mode::RWXU, 0).unwrap();
    let reasons = [
        (".hidden", Reason::Hidden),
        ("copy~", Reason::BackupFile),
        ("dir", Reason::Directory),
        ("pipe", Reason::NotAFile),
    ];
    let expected = reasons.map(|(name, reason)| entry(name, Content::Skipped(reason)));
    assert_eq!(directory.accept(), expected);
}

#[test]
fn links_are_followed_and_dead_ones_reported() {
    let mut directory = Directory::new();
    let target = tempfile::NamedTempFile::new().unwrap();
    fs::write(target.path(), "one").unwrap();
    std::os::unix::fs::symlink(target.path(), directory.dir.path().join("link")).unwrap();
    assert_eq!(directory.accept(), [entry("link", bytes("one"))]);
    drop(target);
    let found = directory.accept();
    assert!(matches!(&found[0].1, Content::Refused(p) if p.reason == Reason::Unreadable));
}

#[test]
fn a_file_of_more_than_ten_mebibytes_is_refused() {
    let mut directory = Directory::new();
    let file = fs::File::create(directory.dir.path().join("big")).unwrap();
    file.set_len(MAX_MANIFEST_BYTES + 1).unwrap();
    let found = directory.accept();
    assert!(matches!(&found[0].1, Content::Refused(p) if p.reason == Reason::TooLarge));
    assert_eq!(directory.accept(), [entry("big", Content::Unchanged)]);
    file.set_len(MAX_MANIFEST_BYTES).unwrap();
    assert!(matches!(&directory.accept()[0].1, Content::Bytes(_)));
}

#[test]
fn a_file_that_is_being_written_is_left_alone() {
    let mut directory = Directory::new();
    directory.write("old", "one");
    directory.accept();
    directory.write("old", "half");
    directory.write("new", "half");
    directory.writing = ["old".into(), "new".into()].into();
    assert_eq!(
        directory.accept(),
        [
            entry("new", Content::Unchanged),
            entry("old", Content::Unchanged)
        ]
    );
    directory.writing.clear();
    assert_eq!(
        directory.accept(),
        [entry("new", bytes("half")), entry("old", bytes("half"))]
    );
}

#[test]
fn missing_files_are_reported_before_the_scan_is_accepted() {
    let mut directory = Directory::new();
    let missing = |directory: &Directory| directory.scan().missing(&directory.known).len();
    directory.write("a", "one");
    assert_eq!(missing(&directory), 0);
    directory.accept();
    assert_eq!(missing(&directory), 0);
    fs::remove_file(directory.dir.path().join("a")).unwrap();
    assert_eq!(missing(&directory), 1);
    assert_eq!(directory.accept(), []);
    assert_eq!(missing(&directory), 0);
}

#[test]
fn an_emptied_directory_has_no_pods_but_a_lost_file_system_says_nothing() {
    let mut directory = Directory::new();
    directory.write("a", "one");
    directory.accept();
    let path = directory.dir.path().to_owned();
    fs::remove_dir_all(&path).unwrap();
    let gone = directory
        .scan()
        .accept(&mut directory.known, &directory.removed);
    assert!(
        matches!(gone, Observation::Failed { problem, .. } if problem.reason == Reason::Missing)
    );
    fs::create_dir(&path).unwrap();
    directory.known.kind = Some(PathKind::Directory { device: 0 });
    let unmounted = directory
        .scan()
        .accept(&mut directory.known, &directory.removed);
    assert!(
        matches!(unmounted, Observation::Failed { problem, .. } if problem.reason == Reason::Missing)
    );
    let device = fs::metadata(&path).unwrap().dev();
    directory.known.kind = Some(PathKind::Directory { device });
    assert_eq!(directory.accept(), []);
}

#[test]
fn a_single_file_may_have_any_name_and_be_removed() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(".pod.tmp");
    let none = BTreeSet::new();
    let mut known = LastScan::default();
    let mut scan = || scan(&path, &known, &none, &none).accept(&mut known, &none);
    assert!(
        matches!(scan(), Observation::Failed { .. }),
        "never seen: it may still come"
    );
    fs::write(&path, "one").unwrap();
    let origin: Box<str> = path.to_string_lossy().into();
    let looked = |manifests| Observation::Scanned {
        source: PodSource::File,
        single: true,
        manifests,
    };
    assert_eq!(scan(), looked(vec![(origin, bytes("one"))]));
    fs::remove_file(&path).unwrap();
    assert_eq!(scan(), looked(vec![]));
    assert_eq!(scan(), looked(vec![]));
    dir.close().unwrap();
    assert!(matches!(scan(), Observation::Failed { .. }));
}
