//! Tests of `place`.

use std::{
    fs,
    os::unix::fs::{PermissionsExt as _, symlink},
};

use tempfile::TempDir;

use super::*;

/// The directory of all logs, which a container has mounted, and a directory of the host.
fn host() -> (TempDir, PathBuf, PathBuf) {
    let root = tempfile::tempdir().unwrap();
    let (logs, victim) = (root.path().join("pods"), root.path().join("victim"));
    fs::create_dir_all(&logs).unwrap();
    fs::create_dir_all(victim.join("main")).unwrap();
    (root, logs, victim)
}

#[test]
fn missing_directories_of_a_log_are_made() {
    let (_root, logs, _) = host();
    for log in [logs.join("deeper/ns_a_u/main/0.log"), logs.join("0.log")] {
        for _ in 0..2 {
            make_dir(&log).unwrap();
        }
        let made = fs::metadata(log.parent().unwrap()).unwrap();
        assert!(made.is_dir());
        assert_eq!(made.permissions().mode() & 0o700, 0o700);
        LogPlace::open(&log).unwrap().new_file().unwrap();
    }
    assert!(make_dir(Path::new("/")).is_err());
}

#[test]
fn no_directory_is_made_through_a_link_that_a_container_put_there() {
    let (_root, logs, victim) = host();
    symlink(&victim, logs.join("ns_a_u")).unwrap();
    make_dir(&logs.join("ns_a_u/other/0.log")).unwrap_err();
    assert!(!victim.join("other").exists());
    fs::create_dir(logs.join("ns_b_u")).unwrap();
    symlink(&victim, logs.join("ns_b_u/main")).unwrap();
    make_dir(&logs.join("ns_b_u/main/0.log")).unwrap_err();
}

#[test]
fn only_a_containers_own_empty_log_is_removed() {
    let (_root, logs, victim) = host();
    let there = |path: &Path| fs::symlink_metadata(path).is_ok();
    let remove = |log: &Path| LogPlace::open(log).and_then(|place| place.remove_if_empty());
    let log = logs.join("ns_a_u/main/0.log");
    make_dir(&log).unwrap();
    assert!(!remove(&log).unwrap());
    fs::write(&log, "").unwrap();
    assert!(remove(&log).unwrap() && !there(&log));
    fs::write(&log, "x").unwrap();
    assert!(!remove(&log).unwrap() && there(&log));

    // Empty files of the host, behind a link in the place of each part.
    let empty = victim.join("main/0.log");
    fs::write(&empty, "").unwrap();
    fs::remove_file(&log).unwrap();
    symlink(&empty, &log).unwrap();
    assert!(!remove(&log).unwrap() && there(&empty) && there(&log));
    symlink(victim.join("main"), logs.join("ns_a_u/link")).unwrap();
    remove(&logs.join("ns_a_u/link/0.log")).unwrap_err();
    symlink(&victim, logs.join("ns_link")).unwrap();
    remove(&logs.join("ns_link/main/0.log")).unwrap_err();
    assert!(there(&empty));
}
