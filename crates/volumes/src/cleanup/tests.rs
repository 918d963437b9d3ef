//! Pods' directories with all that may be in them.

use std::os::unix::fs::symlink;

use rubelet_api::volume::Medium;

use super::*;
use crate::{
    directory,
    empty_dir::{self, EmptyDirRequest},
    sub_path::{self, SubPathRequest},
    termination_log,
    test_support::{Scratch, ignored},
};

fn empty_dir(dirs: &PodDirs, name: &str, medium: Medium) -> PathBuf {
    let request = EmptyDirRequest {
        name,
        medium,
        size: 1 << 20,
        fs_group: None,
        on_root_mismatch: false,
        quota: None,
    };
    empty_dir::prepare(dirs, &request).unwrap().path
}

/// A pod with volumes of each kind, and a directory of the host that must survive everything.
fn full_pod(scratch: &Scratch) -> (PodDirs, PathBuf) {
    let dirs = scratch.dirs();
    let host = scratch.path().join("host");
    fs::create_dir_all(host.join("sub")).unwrap();
    fs::write(host.join("sub/precious"), "").unwrap();
    let disk = empty_dir(&dirs, "disk", Medium::Disk);
    fs::create_dir_all(disk.join("a/b")).unwrap();
    fs::write(disk.join("a/b/f"), "x").unwrap();
    symlink(&host, disk.join("link")).unwrap();
    termination_log::create(&dirs, "web").unwrap();
    fs::write(dirs.etc_hosts(), "").unwrap();
    (dirs, host)
}

fn mount_all(dirs: &PodDirs, host: &Path) {
    let memory = empty_dir(dirs, "memory", Medium::Memory);
    fs::write(memory.join("f"), "x").unwrap();
    for (index, (volume, volume_path, sub_path)) in [
        ("memory", &*memory, "f"),
        ("memory", &*memory, "dir"),
        ("host", host, "sub"),
        ("host", host, "sub/precious"),
    ]
    .into_iter()
    .enumerate()
    {
        let request = SubPathRequest {
            volume,
            volume_path,
            container: "web",
            index,
            sub_path,
        };
        sub_path::prepare(dirs, &request).unwrap();
    }
}

#[test]
fn a_pod_goes_without_a_trace_and_the_host_is_not_touched() {
    let Some(scratch) = Scratch::as_root() else {
        return;
    };
    let (dirs, host) = full_pod(&scratch);
    mount_all(&dirs, &host);
    assert_eq!(scratch.mounts().len(), 5);
    for _ in 0..2 {
        cleanup(&dirs, &ignored).unwrap();
        assert!(!dirs.pod().exists());
        assert!(dirs.pods().exists());
        assert_eq!(scratch.mounts(), []);
    }
    assert!(host.join("sub/precious").exists());
}

#[test]
fn the_volumes_of_a_pod_that_has_ended_go_and_its_other_files_stay() {
    let Some(scratch) = Scratch::as_root() else {
        return;
    };
    let (dirs, host) = full_pod(&scratch);
    mount_all(&dirs, &host);
    for _ in 0..2 {
        remove_volumes(&dirs, &ignored).unwrap();
        assert_eq!(scratch.mounts(), []);
        assert!(!dirs.empty_dir("disk").unwrap().exists());
        assert!(!dirs.empty_dir("memory").unwrap().exists());
        assert!(!dirs.pod().join(SUB_PATHS).exists());
        assert!(dirs.etc_hosts().exists());
    }
    assert!(host.join("sub/precious").exists());
    cleanup(&dirs, &ignored).unwrap();
    assert!(!dirs.pod().exists());
}

#[test]
fn without_mounts_no_rights_are_needed() {
    let scratch = Scratch::new();
    let (dirs, host) = full_pod(&scratch);
    cleanup(&dirs, &ignored).unwrap();
    assert!(!dirs.pod().exists());
    assert!(host.join("sub/precious").exists());
}

#[test]
fn mounts_left_by_a_crash_are_stacked_off() {
    let Some(scratch) = Scratch::as_root() else {
        return;
    };
    let (dirs, _) = full_pod(&scratch);
    let memory = empty_dir(&dirs, "memory", Medium::Memory);
    mount::tmpfs(&memory, Default::default()).unwrap();
    fs::create_dir(memory.join("nested")).unwrap();
    mount::tmpfs(&memory.join("nested"), Default::default()).unwrap();
    cleanup(&dirs, &ignored).unwrap();
    assert!(!dirs.pod().exists());
}

#[test]
fn a_volume_in_use_keeps_everything_until_it_is_free() {
    let Some(scratch) = Scratch::as_root() else {
        return;
    };
    let (dirs, host) = full_pod(&scratch);
    mount_all(&dirs, &host);
    let memory = dirs.empty_dir("memory").unwrap();
    let open = File::open(memory.join("f")).unwrap();
    let error = cleanup(&dirs, &ignored).unwrap_err();
    let expected = format!(
        "cannot remove all files of the pod u1: {} is still in use",
        memory.canonicalize().unwrap().display()
    );
    assert_eq!(error.to_string(), expected);
    assert!(dirs.empty_dir("disk").unwrap().join("a/b/f").exists());
    drop(open);
    cleanup(&dirs, &ignored).unwrap();
    assert!(!dirs.pod().exists());
}

#[test]
fn what_others_mounted_is_left_alone() {
    let Some(scratch) = Scratch::as_root() else {
        return;
    };
    for place in [
        "volumes/kubernetes.io~csi/pv/mount",
        "elsewhere",
        "volume-subpaths",
        "",
    ] {
        let (dirs, host) = full_pod(&scratch);
        let target = dirs.pod().join(place);
        fs::create_dir_all(&target).unwrap();
        mount::bind(&host, &target).unwrap();
        let error = cleanup(&dirs, &ignored).unwrap_err().to_string();
        assert!(error.contains("not by Rubelet"), "{place}: {error}");
        assert!(host.join("sub/precious").exists());
        mount::unmount(&target, false).unwrap();
        cleanup(&dirs, &ignored).unwrap();
        assert!(!dirs.pod().exists(), "{place}");
    }
}

#[test]
fn data_of_other_plugins_is_reported_and_the_rest_goes() {
    let scratch = Scratch::new();
    let (dirs, _) = full_pod(&scratch);
    let other = dirs.volumes().join("kubernetes.io~local-volume/pv");
    directory::ensure(&other, 0o755).unwrap();
    fs::write(other.join("data"), "").unwrap();
    let error = cleanup(&dirs, &ignored).unwrap_err().to_string();
    assert!(
        error.ends_with("pv/data contains files that Rubelet did not create"),
        "{error}"
    );
    assert!(other.join("data").exists());
    assert!(!dirs.empty_dir("disk").unwrap().exists());
    fs::remove_file(other.join("data")).unwrap();
    cleanup(&dirs, &ignored).unwrap();
    assert!(!dirs.pod().exists());
}

#[test]
fn a_link_instead_of_the_pod_directory_is_not_followed() {
    let scratch = Scratch::new();
    let dirs = scratch.dirs();
    let elsewhere = scratch.path().join("elsewhere");
    fs::create_dir_all(elsewhere.join("volumes")).unwrap();
    fs::create_dir_all(dirs.pods()).unwrap();
    symlink(&elsewhere, dirs.pod()).unwrap();
    assert!(cleanup(&dirs, &ignored).is_err());
    assert!(elsewhere.join("volumes").exists());
}

#[test]
fn nothing_there_is_a_success() {
    let scratch = Scratch::new();
    cleanup(&scratch.dirs(), &ignored).unwrap();
    fs::create_dir_all(scratch.dirs().pods()).unwrap();
    cleanup(&scratch.dirs(), &ignored).unwrap();
}

#[test]
fn directories_of_pods_are_listed() {
    let scratch = Scratch::new();
    assert_eq!(orphans(scratch.path()).unwrap(), []);
    for name in ["b", "a"] {
        fs::create_dir_all(pods_dir(scratch.path()).join(name)).unwrap();
    }
    fs::write(pods_dir(scratch.path()).join("file"), "").unwrap();
    assert_eq!(
        orphans(scratch.path()).unwrap(),
        [PodUid::from("a"), PodUid::from("b")]
    );
}
