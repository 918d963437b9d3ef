//! The build script: which commit a binary says it was built from.
#![allow(missing_docs)]

#[path = "../build/commit.rs"]
mod commit;
#[path = "../build/git.rs"]
mod git;
#[path = "../build/libraries.rs"]
mod libraries;

use std::path::Path;
use std::process::Command;

use commit::{ARCHIVE, CLEAN, Commit, DIRTY, Given, UNKNOWN, choose};

const HASH: &str = "0123456789abcdef0123456789abcdef01234567";

fn commit(seconds: Option<i64>, tree: &'static str) -> Commit {
    Commit {
        id: HASH.to_owned(),
        seconds,
        tree,
    }
}

#[test]
fn the_variable_counts_before_the_archive_and_the_archive_before_the_checkout() {
    let checkout = || Some(commit(Some(7), CLEAN));
    let archive = format!("{HASH} 1767225600\n");
    let given = Given {
        variable: Some(HASH),
        epoch: Some("5"),
        file: Some(&archive),
    };
    assert_eq!(choose(given, checkout), Ok(commit(Some(5), UNKNOWN)));
    let given = Given {
        variable: Some(""),
        ..given
    };
    assert_eq!(
        choose(given, checkout),
        Ok(commit(Some(1_767_225_600), ARCHIVE))
    );
    // In a checkout the file has what `git archive` would replace.
    for file in [Some("$Format:%H %ct$\n"), Some(""), None] {
        let given = Given {
            variable: None,
            epoch: Some("5"),
            file,
        };
        assert_eq!(choose(given, checkout), Ok(commit(Some(7), CLEAN)));
        let unknown = Commit {
            id: UNKNOWN.to_owned(),
            ..commit(None, UNKNOWN)
        };
        assert_eq!(choose(given, || None), Ok(unknown));
    }
}

#[test]
fn what_is_not_a_commit_fails_the_build_and_is_named() {
    for variable in ["main", "0123456", &HASH.to_uppercase()] {
        let given = Given {
            variable: Some(variable),
            ..Given::default()
        };
        let error = choose(given, || None).unwrap_err();
        assert!(error.contains(variable), "{error}");
    }
    for file in [HASH, "main 5", "x"] {
        let given = Given {
            file: Some(file),
            ..Given::default()
        };
        let error = choose(given, || None).unwrap_err();
        assert!(error.starts_with("commit.txt: "), "{error}");
    }
}

#[test]
fn a_checkout_a_worktree_and_a_source_archive_inside_of_a_repository_are_distinguished() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().join("repository");
    std::fs::create_dir(&root).unwrap();
    run(&root, &["init", "--quiet", "--initial-branch=main"]);
    std::fs::write(root.join("file"), "1").unwrap();
    run(&root, &["add", "file"]);
    run(&root, &["commit", "--quiet", "--message=First"]);

    let found = git::look(&root, true).unwrap();
    assert_eq!(found.commit.tree, CLEAN);
    assert!(found.commit.seconds.is_some());
    assert!(
        found.watched.iter().all(|path| path.is_file()),
        "{:?}",
        found.watched
    );
    std::fs::write(root.join("file"), "2").unwrap();
    assert_eq!(git::look(&root, true).unwrap().commit.tree, DIRTY);
    assert_eq!(git::look(&root, false).unwrap().commit.tree, UNKNOWN);

    // A commit in one worktree changes no file that another watches.
    run(
        &root,
        &["worktree", "add", "--quiet", "-b", "other", "../other"],
    );
    let other = directory.path().join("other");
    let watched = git::look(&other, false).unwrap().watched;
    let content = || -> Vec<_> {
        watched
            .iter()
            .map(std::fs::read)
            .map(Result::unwrap)
            .collect()
    };
    let before = content();
    run(&root, &["commit", "--quiet", "--all", "--message=Second"]);
    assert_eq!(content(), before);
    run(
        &other,
        &["commit", "--quiet", "--allow-empty", "--message=Third"],
    );
    assert_ne!(content(), before);
    assert_ne!(
        git::look(&other, false).unwrap().commit.id,
        git::look(&root, false).unwrap().commit.id
    );

    let unpacked = root.join("unpacked");
    std::fs::create_dir(&unpacked).unwrap();
    assert!(git::look(&unpacked, true).is_none());
}

#[test]
fn libraries_are_read_from_what_cargo_tree_prints() {
    let text = "rubelet v0.1.0 (/src/crates/rubelet)\tone,two\n\
                b v2.0.1+c.1\tstd\n\
                a v1.0.0\t\n\
                rubelet-base v0.1.0 (/src (old)/crates/base)\tthree\n\
                b v2.0.1+c.1\tstd (*)\n";
    let libraries = libraries::parse(text).unwrap();
    assert_eq!(
        libraries::versions(&libraries),
        ["a 1.0.0", "b 2.0.1+c.1", "rubelet-base 0.1.0"]
    );
    assert_eq!(
        libraries::features(&libraries),
        ["one", "two", "rubelet-base/three"]
    );
    assert_eq!(
        libraries[3].directory.as_deref(),
        Some(Path::new("/src (old)/crates/base"))
    );
    assert!(
        libraries::parse("a 1.0.0\t\n")
            .unwrap_err()
            .contains("a 1.0.0")
    );
    assert!(libraries::linked(Path::new("/"), "x86_64-unknown-linux-gnu").is_err());
}

fn run(directory: &Path, arguments: &[&str]) {
    let status = Command::new("git")
        .args(["-c", "user.name=Test", "-c", "user.email=test@localhost"])
        .args([
            "-c",
            "commit.gpgSign=false",
            "-c",
            "core.hooksPath=/dev/null",
        ])
        .args(arguments)
        .current_dir(directory)
        .status()
        .expect("git can be started");
    assert!(status.success(), "git {arguments:?}");
}
