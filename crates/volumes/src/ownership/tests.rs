//! Tests of `ownership`.

use std::{
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt, symlink},
};

use rubelet_host::mount::{self, TmpfsOptions};

use super::*;
use crate::test_support::Scratch;

fn chmod(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

fn group_and_mode(path: &Path) -> (u32, u32) {
    let found = fs::symlink_metadata(path).unwrap();
    (found.gid(), found.mode() & 0o7777)
}

fn tree(scratch: &Scratch) -> PathBuf {
    let volume = scratch.path().join("v");
    fs::create_dir_all(volume.join("d/e")).unwrap();
    for (file, mode) in [("f", 0o600), ("d/x", 0o755), ("d/e/r", 0o444)] {
        fs::write(volume.join(file), "").unwrap();
        chmod(&volume.join(file), mode);
    }
    for (dir, mode) in [("d/e", 0o700), ("d", 0o755), ("", 0o777)] {
        chmod(&volume.join(dir), mode);
    }
    let outside = scratch.path().join("outside");
    fs::write(&outside, "").unwrap();
    chmod(&outside, 0o600);
    symlink(&outside, volume.join("link")).unwrap();
    volume
}

#[test]
fn all_files_are_given_to_the_group_and_links_are_not_followed() {
    let Some(scratch) = Scratch::as_root() else {
        return;
    };
    let volume = tree(&scratch);
    for _ in 0..2 {
        apply(&volume, 2000, GroupAccess::Write, false).unwrap();
        for (file, mode) in [
            ("", 0o2777),
            ("d", 0o2775),
            ("d/e", 0o2770),
            ("f", 0o660),
            ("d/x", 0o775),
            ("d/e/r", 0o664),
        ] {
            assert_eq!(group_and_mode(&volume.join(file)), (2000, mode), "{file}");
        }
        assert_eq!(group_and_mode(&volume.join("link")).0, 2000);
        assert_eq!(group_and_mode(&scratch.path().join("outside")), (0, 0o600));
    }
}

#[test]
fn on_root_mismatch_stops_at_a_root_that_is_right() {
    let Some(scratch) = Scratch::as_root() else {
        return;
    };
    let volume = tree(&scratch);
    apply(&volume, 2000, GroupAccess::Write, true).unwrap();
    let file = volume.join("f");
    assert_eq!(group_and_mode(&file), (2000, 0o660));
    chmod(&file, 0o600);
    apply(&volume, 2000, GroupAccess::Write, true).unwrap();
    assert_eq!(group_and_mode(&file).1, 0o600, "the root was right");
    chmod(&volume, 0o2750);
    apply(&volume, 2000, GroupAccess::Write, true).unwrap();
    assert_eq!(group_and_mode(&file).1, 0o660, "the root's mode was wrong");
    apply(&volume, 3000, GroupAccess::Write, true).unwrap();
    assert_eq!(group_and_mode(&file).0, 3000, "the root's group was wrong");
}

#[test]
fn numbers_that_are_no_group_are_refused() {
    for group in [-1, i64::from(u32::MAX), i64::MAX] {
        let error = apply(
            Path::new("/rubelet-t-missing"),
            group,
            GroupAccess::Write,
            false,
        )
        .unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("fsGroup {group} is out of range")
        );
    }
}

#[test]
fn directories_nested_without_end_are_an_error_and_no_overflow() {
    let Some(scratch) = Scratch::as_root() else {
        return;
    };
    let volume = scratch.path().join("v");
    fs::create_dir_all(volume.join(vec!["d"; 300].join("/"))).unwrap();
    let error = apply(&volume, 2000, GroupAccess::Write, false).unwrap_err();
    assert!(
        error.to_string().ends_with("nested more than 256 deep"),
        "{error}"
    );
}

#[test]
fn what_is_mounted_in_the_volume_keeps_its_group() {
    let Some(scratch) = Scratch::as_root() else {
        return;
    };
    let volume = tree(&scratch);
    let host = scratch.path().join("host");
    fs::create_dir_all(host.join("d")).unwrap();
    fs::write(host.join("d/secret"), "").unwrap();
    chmod(&host.join("d/secret"), 0o600);
    chmod(&host, 0o700);
    // A bind mount of the same file system, on a directory and on a file, and another file system.
    mount::bind(&host, &volume.join("d/e")).unwrap();
    mount::bind(&scratch.path().join("outside"), &volume.join("f")).unwrap();
    fs::create_dir(volume.join("tmpfs")).unwrap();
    mount::tmpfs(&volume.join("tmpfs"), TmpfsOptions::default()).unwrap();
    let tmpfs = group_and_mode(&volume.join("tmpfs"));

    apply(&volume, 2000, GroupAccess::Write, false).unwrap();
    for (file, expected) in [
        (host.clone(), (0, 0o700)),
        (host.join("d/secret"), (0, 0o600)),
        (scratch.path().join("outside"), (0, 0o600)),
        (volume.join("tmpfs"), tmpfs),
        (volume.join("d/x"), (2000, 0o775)),
        (volume.join("d"), (2000, 0o2775)),
    ] {
        assert_eq!(group_and_mode(&file), expected, "{}", file.display());
    }
    // The volume itself may be a mount: that is one in memory.
    apply(&volume.join("tmpfs"), 2000, GroupAccess::Write, false).unwrap();
    assert_eq!(group_and_mode(&volume.join("tmpfs")).0, 2000);
}

#[test]
fn what_is_exchanged_after_it_was_opened_is_not_followed() {
    let Some(scratch) = Scratch::as_root() else {
        return;
    };
    let volume = tree(&scratch);
    let outside = scratch.path().join("other");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("x"), "").unwrap();
    chmod(&outside.join("x"), 0o600);
    chmod(&outside, 0o700);
    let mut walk = Walk {
        group: 2000,
        access: GroupAccess::Write,
        path: volume.clone(),
        depth: 0,
    };
    let root = rustix::fs::open(&volume, directory::FLAGS, Mode::empty()).unwrap();
    let directory = open_entry(root.as_fd(), c"d").unwrap().unwrap();
    let file = open_entry(root.as_fd(), c"f").unwrap().unwrap();
    fs::rename(volume.join("d"), volume.join("moved")).unwrap();
    fs::rename(volume.join("f"), volume.join("file")).unwrap();
    symlink(&outside, volume.join("d")).unwrap();
    symlink(outside.join("x"), volume.join("f")).unwrap();
    walk.entry(directory).unwrap();
    walk.entry(file).unwrap();
    assert_eq!(group_and_mode(&outside), (0, 0o700));
    assert_eq!(group_and_mode(&outside.join("x")), (0, 0o600));
    assert_eq!(group_and_mode(&volume.join("moved/x")), (2000, 0o775));
    assert_eq!(group_and_mode(&volume.join("file")), (2000, 0o660));
    // A link that is there when it is opened is the link itself.
    let link = open_entry(root.as_fd(), c"d").unwrap().unwrap();
    walk.entry(link).unwrap();
    assert_eq!(group_and_mode(&volume.join("d")).0, 2000);
    assert_eq!(group_and_mode(&outside), (0, 0o700));
}
