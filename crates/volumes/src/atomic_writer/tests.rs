//! What a container sees of a change, and what a crash leaves behind.

use std::{cell::Cell, os::unix::fs::PermissionsExt, sync::Arc};

use super::*;
use crate::{payload::File, test_support::Scratch};

fn payload(files: &[(&str, &str, u32)]) -> Payload {
    let files = files.iter();
    files
        .map(|(path, text, mode)| {
            let file = File {
                data: Arc::from(text.as_bytes()),
                mode: *mode,
                owner: None,
            };
            ((*path).into(), file)
        })
        .collect()
}

fn put(dir: &Path, files: &[(&str, &str, u32)]) {
    write(dir, &payload(files), || Ok::<_, WriteError>(())).unwrap();
}

/// All names in the directory, without the time in the name of the one that is shown.
fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .map(|name| {
            if name.starts_with("..20") {
                "..TIME".to_owned()
            } else {
                name
            }
        })
        .collect();
    names.sort();
    names
}

fn current(dir: &Path) -> PathBuf {
    fs::read_link(dir.join(DATA)).unwrap()
}

fn read(dir: &Path, path: &str) -> String {
    fs::read_to_string(dir.join(path)).unwrap()
}

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777
}

#[test]
fn the_layout_is_that_of_the_kubelet() {
    let scratch = Scratch::new();
    let dir = scratch.path();
    put(
        dir,
        &[
            ("a", "1", 0o644),
            ("sub/b", "2", 0o400),
            ("sub/deep/c", "3", 0o644),
        ],
    );
    assert_eq!(names(dir), ["..TIME", "..data", "a", "sub"]);
    let time = current(dir).into_os_string().into_string().unwrap();
    let shape: String = time
        .chars()
        .map(|letter| if letter.is_ascii_digit() { '0' } else { letter })
        .collect();
    assert_eq!(shape, "..0000_00_00_00_00_00.000000000");
    assert_eq!(fs::read_link(dir.join("a")).unwrap(), Path::new("..data/a"));
    assert_eq!(
        fs::read_link(dir.join("sub")).unwrap(),
        Path::new("..data/sub")
    );
    assert_eq!(read(dir, "sub/deep/c"), "3");
    let data = dir.join(current(dir));
    assert_eq!(mode(&data), 0o755);
    assert_eq!(mode(&data.join("sub")), 0o755);
    assert_eq!(mode(&data.join("a")), 0o644);
    assert_eq!(mode(&data.join("sub/b")), 0o400);
}

#[test]
fn equal_files_are_not_touched() {
    let scratch = Scratch::new();
    let dir = scratch.path();
    let files = [("a", "1", 0o644), ("sub/b", "2", 0o644)];
    put(dir, &files);
    let before = (current(dir), fs::metadata(dir).unwrap().mtime_nsec());
    let given = Cell::new(false);
    write(dir, &payload(&files), || {
        given.set(true);
        Ok::<_, WriteError>(())
    })
    .unwrap();
    assert_eq!(
        (current(dir), fs::metadata(dir).unwrap().mtime_nsec()),
        before
    );
    assert!(!given.get());
}

#[test]
fn a_change_exchanges_all_files_at_once_and_removes_the_old_ones() {
    let scratch = Scratch::new();
    let dir = scratch.path();
    put(
        dir,
        &[("a", "1", 0o644), ("b", "2", 0o644), ("gone/c", "3", 0o644)],
    );
    let before = current(dir);
    // A reader that has the directory open sees the old files until it opens it again.
    let open = fs::File::open(dir.join("a")).unwrap();
    put(
        dir,
        &[("a", "new", 0o644), ("b", "2", 0o644), ("more", "4", 0o644)],
    );
    assert_ne!(current(dir), before);
    assert_eq!(names(dir), ["..TIME", "..data", "a", "b", "more"]);
    assert_eq!(read(dir, "a"), "new");
    assert_eq!(io::read_to_string(open).unwrap(), "1");
    put(dir, &[]);
    assert_eq!(names(dir), ["..TIME", "..data"]);
}

#[test]
fn a_failed_update_is_not_visible() {
    let scratch = Scratch::new();
    let dir = scratch.path();
    put(dir, &[("a", "1", 0o644)]);
    let failed = write(dir, &payload(&[("a", "2", 0o644)]), || {
        Err(at(Path::new("/x"))(io::ErrorKind::PermissionDenied.into()))
    });
    assert_eq!(failed.unwrap_err().to_string(), "cannot write /x");
    assert_eq!(read(dir, "a"), "1");
    put(dir, &[("a", "3", 0o644)]);
    assert_eq!(read(dir, "a"), "3");
    assert_eq!(names(dir), ["..TIME", "..data", "a"]);
}

#[test]
fn what_a_crash_left_behind_is_cleared_and_completed() {
    let scratch = Scratch::new();
    let dir = scratch.path();
    let files = [("a", "1", 0o644), ("b", "2", 0o644)];
    put(dir, &files);
    fs::create_dir(dir.join("..2020_01_01_00_00_00.1")).unwrap();
    fs::create_dir(dir.join(DRAFT)).unwrap();
    fs::write(dir.join(DRAFT).join("half"), "").unwrap();
    symlink("..draft", dir.join(NEW_DATA)).unwrap();
    symlink("..data/old", dir.join("old")).unwrap();
    fs::remove_file(dir.join("b")).unwrap();
    put(dir, &files);
    assert_eq!(names(dir), ["..TIME", "..data", "a", "b"]);
    // The data is gone, its link is not.
    fs::remove_dir_all(dir.join(current(dir))).unwrap();
    put(dir, &files);
    assert_eq!(read(dir, "a"), "1");
}

#[test]
fn a_directory_to_mount_on_stays_where_it_is() {
    let scratch = Scratch::new();
    let dir = scratch.path();
    fs::create_dir(dir.join("nested")).unwrap();
    put(dir, &[("a", "1", 0o644), ("nested/x", "2", 0o644)]);
    put(dir, &[("a", "2", 0o644)]);
    assert_eq!(names(dir), ["..TIME", "..data", "a", "nested"]);
    assert!(dir.join("nested").is_dir());
}
