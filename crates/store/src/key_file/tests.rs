//! Which files are accepted as keys.

use std::{fs::Permissions, os::unix::fs::PermissionsExt as _};

use super::*;

fn directory() -> tempfile::TempDir {
    tempfile::Builder::new()
        .prefix("rbt-store-")
        .tempdir()
        .unwrap()
}

#[test]
fn a_key_is_made_once_for_root_alone_and_read_again() {
    let place = directory();
    let path = place.path().join("new").join("secrets.key");
    assert!(matches!(SealKey::read(&path), Err(KeyError::Missing(_))));
    let (first, is_new) = SealKey::read_or_create(&path).unwrap();
    assert!(is_new);
    let (second, is_new) = SealKey::read_or_create(&path).unwrap();
    assert!(!is_new);
    assert_eq!(format!("{first:?}"), format!("{second:?}"));
    let found = fs::metadata(&path).unwrap();
    assert_eq!((found.mode() & 0o7777, found.len()), (0o600, 32));
    let names = fs::read_dir(path.parent().unwrap()).unwrap().count();
    assert_eq!(names, 1, "nothing else is left there");
    let (other, _) = SealKey::read_or_create(&place.path().join("other.key")).unwrap();
    assert_ne!(format!("{first:?}"), format!("{other:?}"));
    let hex: String = fs::read(&path)
        .unwrap()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let shown = format!("{first:?}");
    assert!(!hex.contains(shown.split('"').nth(1).unwrap()), "{shown}");
}

#[test]
fn a_file_that_others_can_use_or_that_is_no_key_is_refused() {
    let place = directory();
    let path = place.path().join("secrets.key");
    let refusal = |expected: &str| {
        for read in [
            SealKey::read(&path).map(drop),
            SealKey::read_or_create(&path).map(drop),
        ] {
            let error = read.unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    };
    for mode in [0o640, 0o604, 0o660, 0o622] {
        fs::write(&path, [7; 32]).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        refusal(&format!("has mode {mode:04o}"));
    }
    for length in [0, 31, 33, 100_000] {
        fs::write(&path, vec![7; length]).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
        refusal("does not have 32 bytes");
    }
    fs::write(&path, [7; 32]).unwrap();
    for mode in [0o600, 0o400] {
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        SealKey::read(&path).unwrap();
    }
    if geteuid().is_root() {
        std::os::unix::fs::chown(&path, Some(12345), None).unwrap();
        refusal("belongs to user 12345, not to user 0");
        std::os::unix::fs::chown(&path, Some(0), None).unwrap();
    }
    let real = place.path().join("real");
    fs::rename(&path, &real).unwrap();
    std::os::unix::fs::symlink(&real, &path).unwrap();
    refusal("is a symbolic link");
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    refusal("is not a regular file");
    fs::remove_dir(&path).unwrap();
    let kind = rustix::fs::FileType::Fifo;
    rustix::fs::mknodat(CWD, &path, kind, 0o600.into(), 0).unwrap();
    refusal("is not a regular file");
}
