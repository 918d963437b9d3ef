//! Tests of `in_root`.

use super::*;
use std::{fs, os::unix::fs::symlink};

fn root() -> (tempfile::TempDir, RootDir) {
    let dir = tempfile::Builder::new()
        .prefix("rbt-container-")
        .tempdir()
        .unwrap();
    let fd = rustix::fs::open(
        dir.path(),
        OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC,
        Mode::empty(),
    )
    .unwrap();
    (dir, RootDir(fd))
}

#[test]
fn links_and_parents_stay_inside() {
    let (dir, root) = root();
    let outside = tempfile::tempdir().unwrap();
    symlink(outside.path(), dir.path().join("out")).unwrap();
    symlink("../../../../../..", dir.path().join("up")).unwrap();
    root.make_dir(Path::new("/out/a"), Mode::RWXU).unwrap();
    root.make_dir(Path::new("/up/../../b"), Mode::RWXU).unwrap();
    assert!(!outside.path().join("a").exists());
    assert!(dir.path().join("b").is_dir());
    let inside = dir.path().join(outside.path().strip_prefix("/").unwrap());
    assert!(inside.join("a").is_dir());
}

#[test]
fn an_ordinary_directory_has_no_link_on_its_path() {
    let (dir, root) = root();
    let mode = Mode::from_raw_mode(0o755);
    fs::create_dir(dir.path().join("plain")).unwrap();
    symlink("plain", dir.path().join("link")).unwrap();
    symlink("missing", dir.path().join("dangling")).unwrap();
    symlink("/plain", dir.path().join("plain/above")).unwrap();
    fs::write(dir.path().join("file"), "").unwrap();
    root.make_ordinary_dir(Path::new("/plain/a/b"), mode)
        .unwrap();
    assert!(dir.path().join("plain/a/b").is_dir());
    for (path, error) in [
        ("/link", libc::ELOOP),
        ("/link/x", libc::ELOOP),
        ("/dangling", libc::ELOOP),
        ("/dangling/x/y", libc::ELOOP),
        ("/plain/above/x", libc::ELOOP),
        ("/file", libc::ENOTDIR),
        ("/file/x", libc::ENOTDIR),
    ] {
        let refused = root.make_ordinary_dir(Path::new(path), mode).unwrap_err();
        let raw = refused.raw_os_error();
        assert!(
            raw == Some(error) || raw == Some(libc::ENOTDIR),
            "{path}: {refused}"
        );
    }
    assert!(!dir.path().join("plain/x").exists() && !dir.path().join("missing").exists());
}

#[test]
fn files_are_made_with_the_directories_above() {
    let (dir, root) = root();
    root.make_file(Path::new("/etc/x/hosts")).unwrap();
    assert!(dir.path().join("etc/x/hosts").is_file());
    fs::write(dir.path().join("etc/x/hosts"), "kept").unwrap();
    root.make_file(Path::new("/etc/x/hosts")).unwrap();
    let text = fs::read_to_string(dir.path().join("etc/x/hosts")).unwrap();
    assert_eq!(text, "kept");
}

#[test]
fn links_in_a_circle_end() {
    let (dir, root) = root();
    symlink("b", dir.path().join("a")).unwrap();
    symlink("a", dir.path().join("b")).unwrap();
    assert!(root.make_dir(Path::new("/a/c"), Mode::RWXU).is_err());
}
