//! A disk that fills up, a log without end, and directories that a container exchanges.

use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

use rubelet_logs::layout::is_rotation_suffix;

use super::*;

const STAMP: &str = "2026-11-22T21:51:07.123456789Z";
const LATER: &str = "2026-11-22T21:51:08.000000001Z";

/// A directory as those of containers are: two levels below that of all logs.
fn directory() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::Builder::new()
        .prefix("rbt-shim-log-")
        .tempdir()
        .unwrap();
    let container = dir.path().join("pod/main");
    fs::create_dir_all(&container).unwrap();
    (dir, container.join("0.log"))
}

fn entry(number: usize) -> Vec<u8> {
    format!("{STAMP} stdout F {number:0>950}\n").into_bytes()
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap()
}

/// The files of a log, the one that is written last.
fn files(log: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(log.parent().unwrap()).unwrap();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files.rotate_left(1);
    files
}

#[test]
fn a_full_disk_drops_whole_entries_and_the_log_reports_it() {
    let mount = crate::supervisor::test_mount::Tmpfs::new("log-full", 64 << 10);
    let path = mount.path().join("0.log");
    let mut log = LogFile::open(Some(&path), 0).unwrap();
    let entry = entry(1);
    let batch = entry.repeat(10);
    let mut why = None;
    for _ in 0..20 {
        why = why.or(log.append(&batch, STAMP));
    }
    assert!(why.unwrap().contains("No space left"));
    let text = fs::read(&path).unwrap();
    assert_eq!(text.len() % entry.len(), 0, "half an entry is in the file");
    let written = (text.len() / entry.len()) as u64;
    assert!(written > 30, "{written}");
    let (lines, bytes) = (200 - written, (200 - written) * entry.len() as u64);
    assert_eq!(
        (log.state().lost_lines, log.state().lost_bytes),
        (lines, bytes)
    );

    // Space comes back: so do the entries, behind one that tells what is missing.
    fs::rename(&path, mount.path().join("old")).unwrap();
    fs::remove_file(mount.path().join("old")).unwrap();
    log.reopen().unwrap();
    assert_eq!(log.append(&entry, LATER), None);
    let text = read(&path);
    let (note, rest) = text.split_once('\n').unwrap();
    let start = format!(
        "{LATER} stderr F rubelet: {lines} entries of this log ({bytes} bytes) were lost: "
    );
    assert!(note.starts_with(&start), "{note}");
    assert!(note.contains("No space left"), "{note}");
    assert_eq!(rest.as_bytes(), entry);
    log.append(&entry, LATER);
    assert_eq!(read(&path).matches("rubelet:").count(), 1);
    assert_eq!(log.state().lost_lines, lines);
}

#[test]
fn a_log_that_was_moved_away_is_written_to_until_it_is_reopened() {
    let (_dir, path) = directory();
    let moved = path.with_file_name("0.log.1");
    let mut log = LogFile::open(Some(&path), 0).unwrap();
    log.append(b"a\n", STAMP);
    fs::rename(&path, &moved).unwrap();
    log.append(b"b\n", STAMP);
    log.reopen().unwrap();
    log.append(b"c\n", STAMP);
    assert_eq!(read(&moved), "a\nb\n");
    assert_eq!(read(&path), "c\n");
}

#[test]
fn a_log_never_takes_more_than_its_bound_and_keeps_what_is_newest() {
    for stamps in [[STAMP, STAMP], [STAMP, LATER]] {
        let (_dir, path) = directory();
        let bound = 64 << 10;
        let mut log = LogFile::open(Some(&path), bound).unwrap();
        let mut warnings = Vec::new();
        let count = 1000;
        for number in 0..count {
            warnings.extend(log.append(&entry(number), stamps[number % 2]));
            let sizes = files(&path)
                .into_iter()
                .map(|file| file.metadata().unwrap().len());
            let total: u64 = sizes.sum();
            assert!(total <= bound, "{total}");
        }
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        assert!(
            warnings[0].contains("oldest entries are dropped"),
            "{warnings:?}"
        );
        let files = files(&path);
        assert_eq!(files.len(), 2, "{files:?}");
        let name = files[0].file_name().unwrap().to_str().unwrap();
        assert!(
            is_rotation_suffix(name.strip_prefix("0.log.").unwrap()),
            "{name}"
        );
        let text: String = files.iter().map(|file| read(file)).collect();
        let first = count - text.lines().count();
        assert!(first < count - 32, "{first}");
        let expected: Vec<u8> = (first..count).flat_map(entry).collect();
        assert_eq!(text.as_bytes(), expected, "entries are whole and in order");
        assert_eq!(log.state().lost_lines, 0);
    }
}

#[test]
fn without_a_bound_nothing_is_moved_and_one_large_write_is_whole() {
    let (_dir, path) = directory();
    let mut log = LogFile::open(Some(&path), 0).unwrap();
    for number in 0..100 {
        log.append(&entry(number), STAMP);
    }
    assert_eq!(files(&path).len(), 1);
    let (_dir, path) = directory();
    let mut log = LogFile::open(Some(&path), 1000).unwrap();
    let batch = entry(7).repeat(5);
    log.append(&batch, STAMP);
    assert_eq!(read(&path).as_bytes(), batch);
}

#[test]
fn a_file_that_a_kubelet_has_just_moved_is_left_to_it() {
    let (_dir, path) = directory();
    let mut log = LogFile::open(Some(&path), 8 << 10).unwrap();
    for number in 0..4 {
        log.append(&entry(number), STAMP);
    }
    let moved = path.with_file_name("0.log.20260101-000000");
    fs::rename(&path, &moved).unwrap();
    log.append(&entry(4), STAMP);
    assert_eq!(read(&path).as_bytes(), entry(4));
    assert_eq!(read(&moved).lines().count(), 4);
    assert_eq!(files(&path).len(), 2);
    log.reopen().unwrap();
    log.append(&entry(5), STAMP);
    assert_eq!(read(&path).lines().count(), 2);
}

#[test]
fn where_no_new_file_can_be_made_entries_are_lost_and_the_bound_holds() {
    let (_dir, path) = directory();
    let mut log = LogFile::open(Some(&path), 8 << 10).unwrap();
    for number in 0..4 {
        log.append(&entry(number), STAMP);
    }
    // The name that the file would get is taken by something else.
    let taken = path.with_file_name("0.log.20261122-215107");
    fs::create_dir(&taken).unwrap();
    let why = log.append(&entry(4), STAMP).unwrap();
    assert!(why.contains("File exists"), "{why}");
    assert_eq!(read(&path).lines().count(), 4);
    assert_eq!(log.state().lost_lines, 1);
    fs::remove_dir(&taken).unwrap();
    log.append(&entry(5), LATER);
    let text = read(&path);
    assert!(
        text.contains("1 entries of this log") && text.contains("File exists"),
        "{text}"
    );
    assert!(
        text.ends_with(&*String::from_utf8(entry(5)).unwrap()),
        "{text}"
    );
}

/// What a container does that mounts the directory of all logs.
#[test]
fn links_in_the_place_of_a_log_and_of_its_directories_are_refused() {
    let (dir, path) = directory();
    let host = dir.path().join("host");
    fs::create_dir_all(host.join("main")).unwrap();
    fs::write(host.join("secret"), "").unwrap();
    let refused = |path: &Path| LogFile::open(Some(path), 0).map(drop).unwrap_err();

    symlink(host.join("secret"), &path).unwrap();
    assert_eq!(refused(&path).raw_os_error(), Some(libc::ELOOP));
    symlink(host.join("new"), path.with_file_name("1.log")).unwrap();
    refused(&path.with_file_name("1.log"));
    for (link, target) in [("pod/link", host.join("main")), ("pods", host.clone())] {
        symlink(target, dir.path().join(link)).unwrap();
    }
    refused(&dir.path().join("pod/link/0.log"));
    refused(&dir.path().join("pods/main/0.log"));
    rustix::fs::mkfifoat(
        rustix::fs::CWD,
        path.with_file_name("2.log"),
        rustix::fs::Mode::RWXU,
    )
    .unwrap();
    refused(&path.with_file_name("2.log"));
    assert!(!host.join("new").exists() && !host.join("main/0.log").exists());
    assert_eq!(read(&host.join("secret")), "");

    // A link above the pod's own directories is the administrator's.
    symlink(dir.path(), dir.path().join("logs")).unwrap();
    LogFile::open(Some(&dir.path().join("logs/pod/main/3.log")), 0).unwrap();
    assert!(path.with_file_name("3.log").exists());
}

#[test]
fn a_directory_that_is_exchanged_later_redirects_neither_writes_nor_rotation() {
    let (dir, path) = directory();
    let mut log = LogFile::open(Some(&path), 8 << 10).unwrap();
    log.append(&entry(0), STAMP);
    let host = dir.path().join("host");
    fs::create_dir(&host).unwrap();
    fs::write(host.join("0.log"), "of the host\n").unwrap();
    let directory = path.parent().unwrap();
    let moved = dir.path().join("moved");
    fs::rename(directory, &moved).unwrap();
    symlink(&host, directory).unwrap();
    for number in 1..20 {
        log.append(&entry(number), STAMP);
    }
    assert!(log.reopen().is_err());
    log.append(&entry(20), STAMP);
    assert_eq!(files(&moved.join("0.log")).len(), 2);
    assert_eq!(files(&host.join("0.log")).len(), 1);
    assert_eq!(read(&host.join("0.log")), "of the host\n");
}
