//! Tests of `tree`.

use super::*;

fn directory() -> tempfile::TempDir {
    tempfile::Builder::new()
        .prefix("rbt-images-")
        .tempdir()
        .unwrap()
}

/// A chain of directories, longer than a path may be, with a file in each.
fn dig(at: &Path, depth: usize) {
    let mut here = fs::open(at, DIRECTORY, Mode::empty()).unwrap();
    for _ in 0..depth {
        fs::mkdirat(&here, "deep", Mode::RWXU).unwrap();
        let file = OFlags::CREATE | OFlags::WRONLY;
        fs::openat(&here, "file", file, Mode::RWXU).unwrap();
        here = fs::openat(&here, "deep", DIRECTORY, Mode::empty()).unwrap();
    }
}

#[test]
fn directories_deeper_than_any_stack_are_removed() {
    let dir = directory();
    let victim = dir.path().join("victim");
    std::fs::create_dir(&victim).unwrap();
    dig(&victim, 3000);
    std::fs::create_dir(victim.join(".rubelet-removed-1")).unwrap();
    remove(&victim).unwrap();
    assert!(!victim.exists());
    remove(&victim).unwrap();
}

#[test]
fn what_a_container_made_immutable_is_removed() {
    let dir = directory();
    let deep = dir.path().join("victim/a/b");
    std::fs::create_dir_all(&deep).unwrap();
    std::fs::write(deep.join("file"), "x").unwrap();
    let mut immutable = 0;
    for path in ["victim/a/b/file", "victim/a/b", "victim/a"] {
        let file = std::fs::File::open(dir.path().join(path)).unwrap();
        // Not every disk has it, and not every test may set it.
        let set = fs::ioctl_getflags(&file)
            .and_then(|flags| fs::ioctl_setflags(&file, flags | IFlags::IMMUTABLE));
        immutable += usize::from(set.is_ok());
    }
    remove(&dir.path().join("victim")).unwrap();
    assert!(
        !dir.path().join("victim").exists(),
        "{immutable} were immutable"
    );
}

#[test]
fn links_are_removed_not_followed() {
    let dir = directory();
    std::fs::create_dir_all(dir.path().join("victim/a/b")).unwrap();
    std::fs::write(dir.path().join("kept"), "x").unwrap();
    std::os::unix::fs::symlink(dir.path(), dir.path().join("victim/a/link")).unwrap();
    remove(&dir.path().join("victim")).unwrap();
    assert!(dir.path().join("kept").exists());
}
