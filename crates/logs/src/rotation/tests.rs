//! Tests of rotation, on real files.

use std::{
    fs,
    io::{Read as _, Write as _},
    os::unix::fs::symlink,
    path::PathBuf,
};

use flate2::read::GzDecoder;
use tempfile::TempDir;

use super::*;

const POLICY: RotationPolicy = RotationPolicy {
    max_bytes: 10,
    max_files: 4,
};

/// A log in the directory of a container.
fn log() -> (TempDir, PathBuf) {
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().join("ns_a_u/main");
    fs::create_dir_all(&dir).unwrap();
    (root, dir.join("0.log"))
}

fn rotate(log: &Path, second: u32) -> RotatedLog {
    let now = format!("2024-01-01T00:00:{second:02}Z");
    RotatedLog::rename(log, now.parse().unwrap()).unwrap()
}

fn names(log: &Path) -> Vec<String> {
    let entries = fs::read_dir(log.parent().unwrap()).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn gunzip(path: &Path) -> String {
    let mut text = String::new();
    let mut decoder = GzDecoder::new(fs::File::open(path).unwrap());
    decoder.read_to_string(&mut text).unwrap();
    text
}

#[test]
fn a_log_that_is_rotated_again_and_again_keeps_so_many_files() {
    let (_root, log) = log();
    for second in 0..6 {
        fs::write(&log, format!("text {second}")).unwrap();
        rotate(&log, second);
        fs::write(&log, "now").unwrap();
        let more = remove_excess(&log, POLICY).unwrap();
        assert_eq!(more, second > 0);
        compress(&log).unwrap();
        assert!(!remove_excess(&log, POLICY).unwrap());
    }
    let expected = [
        "0.log",
        "0.log.20240101-000003.gz",
        "0.log.20240101-000004.gz",
        "0.log.20240101-000005",
    ];
    assert_eq!(names(&log), expected);
    assert_eq!(gunzip(&log.with_file_name(expected[1])), "text 3");
}

#[test]
fn a_rotation_is_undone_unless_the_runtime_made_a_new_file() {
    let (_root, log) = log();
    fs::write(&log, "text").unwrap();
    rotate(&log, 0).undo();
    assert_eq!(names(&log), ["0.log"]);
    let rotated = rotate(&log, 0);
    assert_eq!(size(&log).unwrap(), None);
    fs::write(&log, "new").unwrap();
    rotated.undo();
    assert_eq!(names(&log), ["0.log", "0.log.20240101-000000"]);
    assert_eq!(size(&log).unwrap(), Some(3));
}

#[test]
fn a_file_that_can_not_be_compressed_stays() {
    let (_root, log) = log();
    fs::write(&log, "text").unwrap();
    rotate(&log, 0);
    fs::write(&log, "text").unwrap();
    rotate(&log, 1);
    // The name of the compressed file is in use.
    let taken = log.with_file_name("0.log.20240101-000000.tmp");
    fs::create_dir(&taken).unwrap();
    compress(&log).unwrap_err();
    assert!(log.with_file_name("0.log.20240101-000000").exists());
    fs::remove_dir(taken).unwrap();
    compress(&log).unwrap();
    assert_eq!(
        names(&log),
        ["0.log.20240101-000000.gz", "0.log.20240101-000001"]
    );
}

/// A container that mounts the log directory writable puts links there.
#[test]
fn nothing_outside_of_the_directory_is_renamed_read_or_removed() {
    let (root, log) = log();
    let victim = root.path().join("victim");
    fs::create_dir(&victim).unwrap();
    let secret = victim.join("secret");
    fs::write(&secret, "secret").unwrap();
    let now = Timestamp::UNIX_EPOCH;

    // In the place of a rotated file: nothing is compressed, and only the link is removed.
    fs::write(&log, "text").unwrap();
    rotate(&log, 1);
    symlink(&secret, log.with_file_name("0.log.20240101-000000")).unwrap();
    compress(&log).unwrap_err();
    // A name for the compressed file that leads to the victim is replaced, not written through.
    let planted = log.with_file_name("0.log.20240101-000000.tmp");
    symlink(&secret, &planted).unwrap();
    remove_excess(&log, POLICY).unwrap();
    assert!(fs::symlink_metadata(&planted).is_err());
    let one = RotationPolicy {
        max_files: 2,
        ..POLICY
    };
    remove_excess(&log, one).unwrap();
    assert_eq!(names(&log), ["0.log.20240101-000001"]);

    // In the place of the log: it has no size.
    symlink(&secret, &log).unwrap();
    assert!(size(&log).is_err());
    fs::remove_file(&log).unwrap();

    // In the place of the container's directory.
    let dir = log.parent().unwrap();
    fs::remove_dir_all(dir).unwrap();
    symlink(&victim, dir).unwrap();
    let inside = dir.join("secret");
    RotatedLog::rename(&inside, now).unwrap_err();
    remove_excess(&inside, one).unwrap_err();
    compress(&inside).unwrap_err();
    assert_eq!(fs::read_to_string(&secret).unwrap(), "secret");
}

#[test]
fn a_directory_full_of_names_is_an_error_and_not_a_long_wait() {
    let (_root, log) = log();
    for number in 0..=crate::place::MAX_FILES {
        fs::File::create(log.with_file_name(format!("0.log.{number}"))).unwrap();
    }
    fs::write(&log, "text").unwrap();
    let error = RotatedLog::rename(&log, Timestamp::UNIX_EPOCH).unwrap_err();
    assert!(error.to_string().contains("10000"), "{error}");
    let mut file = fs::OpenOptions::new().append(true).open(&log).unwrap();
    file.write_all(b"!").unwrap();
    assert_eq!(size(&log).unwrap(), Some(5));
}
