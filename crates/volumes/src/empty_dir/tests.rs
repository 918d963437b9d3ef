//! Tests of `empty_dir`.

use std::os::unix::fs::MetadataExt;

use super::*;
use crate::test_support::Scratch;

fn request(medium: Medium) -> EmptyDirRequest<'static> {
    EmptyDirRequest {
        name: "v",
        medium,
        size: 1 << 20,
        fs_group: None,
        on_root_mismatch: false,
        quota: None,
    }
}

fn mode(path: &Path) -> u32 {
    path.metadata().unwrap().mode() & 0o7777
}

#[test]
fn a_directory_on_disk_is_open_to_all_and_marked_ready() {
    let scratch = Scratch::new();
    let dirs = scratch.dirs();
    let made = prepare(&dirs, &request(Medium::Disk)).unwrap();
    assert_eq!(mode(&made.path), 0o777);
    assert!(
        dirs.plugins()
            .join("kubernetes.io~empty-dir/v/ready")
            .is_file()
    );
}

#[test]
fn a_group_owns_the_directory_and_what_is_made_in_it() {
    let Some(scratch) = Scratch::as_root() else {
        return;
    };
    let dirs = scratch.dirs();
    let with_group = EmptyDirRequest {
        fs_group: Some(2000),
        ..request(Medium::Disk)
    };
    let path = prepare(&dirs, &with_group).unwrap().path;
    assert_eq!(
        (path.metadata().unwrap().gid(), mode(&path)),
        (2000, 0o2777)
    );
    // Ready: containers may do with it what they like.
    fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
    prepare(&dirs, &with_group).unwrap();
    assert_eq!(mode(&path), 0o700);
}

#[test]
fn a_crash_before_the_marker_repeats_all_steps() {
    let Some(scratch) = Scratch::as_root() else {
        return;
    };
    let dirs = scratch.dirs();
    for medium in [Medium::Disk, Medium::Memory] {
        let request = EmptyDirRequest {
            fs_group: Some(2000),
            ..request(medium)
        };
        let path = prepare(&dirs, &request).unwrap().path;
        fs::remove_file(dirs.plugins().join("kubernetes.io~empty-dir/v/ready")).unwrap();
        fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
        prepare(&dirs, &request).unwrap();
        assert_eq!(path.metadata().unwrap().gid(), 2000);
        assert_eq!(mode(&path) & 0o2770, 0o2770);
    }
    assert_eq!(scratch.mounts().len(), 1, "mounted once");
}

#[test]
fn a_volume_in_memory_has_its_size_and_is_mounted_once() {
    let Some(scratch) = Scratch::as_root() else {
        return;
    };
    let dirs = scratch.dirs();
    let path = prepare(&dirs, &request(Medium::Memory)).unwrap().path;
    fs::write(path.join("f"), "x").unwrap();
    prepare(&dirs, &request(Medium::Memory)).unwrap();
    assert!(path.join("f").exists());
    assert_eq!(scratch.mounts().len(), 1);
    assert_eq!(scratch.mounts()[0].fs_type, "tmpfs");
    let stat = rustix::fs::statvfs(&path).unwrap();
    assert_eq!(stat.f_blocks * stat.f_frsize, 1 << 20);
    assert_eq!(mode(&path), 0o1777);
}

#[test]
fn a_volume_in_memory_comes_back_after_a_reboot() {
    let Some(scratch) = Scratch::as_root() else {
        return;
    };
    let dirs = scratch.dirs();
    let path = prepare(&dirs, &request(Medium::Memory)).unwrap().path;
    mount::unmount(&path, false).unwrap();
    prepare(&dirs, &request(Medium::Memory)).unwrap();
    assert!(mount::is_mount_point(&path).unwrap());
}

#[test]
fn a_volume_that_was_deleted_by_hand_is_made_again() {
    let scratch = Scratch::new();
    let dirs = scratch.dirs();
    let path = prepare(&dirs, &request(Medium::Disk)).unwrap().path;
    fs::remove_dir(&path).unwrap();
    prepare(&dirs, &request(Medium::Disk)).unwrap();
    assert_eq!(mode(&path), 0o777);
}
