//! Tests of `remove`.

use std::{fs, fs::File, os::unix::fs::symlink};

use rubelet_host::mount;

use super::*;
use crate::test_support::Scratch;

fn remove(scratch: &Scratch, limits: Limits) -> Vec<String> {
    let parent = File::open(scratch.path()).unwrap();
    let problems = tree(parent.as_fd(), scratch.path(), OsStr::new("t"), limits);
    let root = format!("{}/", scratch.path().display());
    problems
        .iter()
        .map(|problem| problem.to_string().replace(&root, ""))
        .collect()
}

fn files(scratch: &Scratch, names: &[&str]) {
    for name in names {
        let path = scratch.path().join("t").join(name);
        if name.ends_with('/') {
            fs::create_dir_all(path).unwrap();
        } else {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "x").unwrap();
        }
    }
}

#[test]
fn a_tree_goes_and_links_are_not_followed() {
    let scratch = Scratch::new();
    files(&scratch, &["a/b/c", "a/d", "e/", "f"]);
    let outside = scratch.path().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("kept"), "").unwrap();
    for link in ["t/l1", "t/a/b/l2"] {
        symlink(&outside, scratch.path().join(link)).unwrap();
    }
    for _ in 0..2 {
        assert_eq!(remove(&scratch, Limits::ALL), [""; 0]);
        assert!(!scratch.path().join("t").exists());
    }
    assert!(outside.join("kept").exists());
    symlink(&outside, scratch.path().join("t")).unwrap();
    assert_eq!(
        remove(&scratch, Limits::ALL),
        [""; 0],
        "a link goes, not what it points to"
    );
    assert!(outside.join("kept").exists());
}

#[test]
fn without_files_only_empty_directories_go() {
    let scratch = Scratch::new();
    files(&scratch, &["a/b/", "c/d/", "c/f"]);
    let problem = "t/c/f contains files that Rubelet did not create";
    assert_eq!(remove(&scratch, Limits::DIRECTORIES), [problem]);
    assert!(!scratch.path().join("t/a").exists());
    assert!(!scratch.path().join("t/c/d").exists());
    fs::remove_file(scratch.path().join("t/c/f")).unwrap();
    assert_eq!(remove(&scratch, Limits::DIRECTORIES), [""; 0]);
}

#[test]
fn no_more_levels_than_allowed_are_entered() {
    let scratch = Scratch::new();
    files(&scratch, &["v/c/0/", "v/c/1", "v/c/2/deep"]);
    let limits = Limits {
        files: true,
        depth: 3,
    };
    let problem = "t/v/c/2 contains files that Rubelet did not create";
    assert_eq!(remove(&scratch, limits), [problem]);
    assert!(scratch.path().join("t/v/c/2/deep").exists());
    assert!(!scratch.path().join("t/v/c/1").exists());
}

#[test]
fn many_files_and_deep_directories_go() {
    let scratch = Scratch::new();
    let names: Vec<String> = (0..3000).map(|number| format!("many/{number}")).collect();
    files(
        &scratch,
        &names.iter().map(String::as_str).collect::<Vec<_>>(),
    );
    // Deeper than any path can be long: made the way a container would, step by step.
    let mut dir = OwnedFd::from(File::open(scratch.path().join("t")).unwrap());
    for _ in 0..3000 {
        rustix::fs::mkdirat(&dir, "d", Mode::RWXU).unwrap();
        let flags = rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::DIRECTORY;
        dir = rustix::fs::openat(&dir, "d", flags, Mode::empty()).unwrap();
    }
    drop(dir);
    assert_eq!(remove(&scratch, Limits::ALL), [""; 0]);
    assert!(!scratch.path().join("t").exists());
}

#[test]
fn mounts_are_never_entered_not_even_of_the_same_file_system() {
    let Some(scratch) = Scratch::as_root() else {
        return;
    };
    files(&scratch, &["bound/", "tmpfs/", "file", "beside"]);
    let precious = scratch.path().join("precious");
    fs::create_dir(&precious).unwrap();
    fs::write(precious.join("kept"), "").unwrap();
    mount::bind(&precious, &scratch.path().join("t/bound")).unwrap();
    mount::bind(&precious.join("kept"), &scratch.path().join("t/file")).unwrap();
    mount::tmpfs(&scratch.path().join("t/tmpfs"), Default::default()).unwrap();
    fs::write(scratch.path().join("t/tmpfs/kept"), "").unwrap();
    let mut problems = remove(&scratch, Limits::ALL);
    problems.sort();
    let mounted = ["t/bound", "t/file", "t/tmpfs"];
    assert_eq!(
        problems,
        mounted.map(|path| format!("{path} is still mounted"))
    );
    assert!(precious.join("kept").exists());
    assert!(scratch.path().join("t/tmpfs/kept").exists());
    assert!(!scratch.path().join("t/beside").exists());
}
