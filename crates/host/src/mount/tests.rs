//! Real mounts below private directories; they need root.

use std::{fs, os::unix::fs::PermissionsExt};

use super::*;

/// A directory whose mounts are gone when the test ends, however it ends.
struct Scratch(tempfile::TempDir);

impl Scratch {
    /// `None` where the test can't run and was told to be skipped.
    #[track_caller]
    fn as_root() -> Option<Self> {
        if !rubelet_needs::root() {
            return None;
        }
        let dir = tempfile::Builder::new()
            .prefix("rbt-host-")
            .tempdir()
            .unwrap();
        Some(Self(dir))
    }

    fn dir(&self, name: &str) -> PathBuf {
        let path = self.0.path().join(name);
        fs::create_dir_all(&path).unwrap();
        path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let mounts = mountinfo::read().unwrap();
        for entry in mountinfo::at_or_below(&mounts, &self.0.path().canonicalize().unwrap()) {
            let _ = unmount(&entry.mount_point, true);
        }
    }
}

#[test]
fn a_tmpfs_has_its_size_and_mode_and_can_be_unmounted() {
    let Some(scratch) = Scratch::as_root() else {
        return;
    };
    let target = scratch.dir("t");
    let options = TmpfsOptions {
        size: Some(1 << 20),
        mode: Some(0o777),
        noswap: false,
    };
    tmpfs(&target, options).unwrap();
    assert!(is_mount_point(&target).unwrap());
    assert_eq!(
        fs::metadata(&target).unwrap().permissions().mode() & 0o7777,
        0o777
    );
    let stat = rustix::fs::statvfs(&target).unwrap();
    assert_eq!(stat.f_blocks * stat.f_frsize, 1 << 20);

    let open = fs::File::create(target.join("f")).unwrap();
    assert_eq!(unmount(&target, false).unwrap(), UnmountOutcome::StillBusy);
    drop(open);
    assert_eq!(unmount(&target, false).unwrap(), UnmountOutcome::Gone);
    assert_eq!(unmount(&target, false).unwrap(), UnmountOutcome::WasNot);
    assert_eq!(
        unmount(&target.join("missing"), false).unwrap(),
        UnmountOutcome::WasNot
    );
    assert!(!is_mount_point(&target).unwrap());
}

#[test]
fn an_unknown_tmpfs_option_is_reported_by_itself() {
    let refused = |errno: Errno| MountError::Tmpfs {
        target: "/x".into(),
        options: "noswap".into(),
        source: errno.into(),
    };
    assert!(refused(Errno::INVAL).is_invalid_option());
    assert!(!refused(Errno::PERM).is_invalid_option());
    assert_eq!(
        refused(Errno::PERM).to_string(),
        "cannot mount a tmpfs (noswap) on /x"
    );
}

#[test]
fn bind_mounts_within_one_file_system_are_mount_points() {
    let Some(scratch) = Scratch::as_root() else {
        return;
    };
    let (source, target) = (scratch.dir("s"), scratch.dir("t"));
    fs::write(source.join("f"), "x").unwrap();
    bind(&source, &target).unwrap();
    assert!(is_mount_point(&target).unwrap());
    assert_eq!(fs::read(target.join("f")).unwrap(), b"x");

    let file = scratch.0.path().join("file");
    fs::write(&file, "").unwrap();
    bind_fd(fs::File::open(source.join("f")).unwrap(), "f", &file).unwrap();
    assert!(is_mount_point(&file).unwrap());
    assert_eq!(fs::read(&file).unwrap(), b"x");
    assert_eq!(unmount(&file, true).unwrap(), UnmountOutcome::Gone);
}

#[test]
fn errors_name_the_target() {
    let missing = Path::new("/rubelet-t-missing");
    let error = is_mount_point(missing).unwrap_err();
    assert_eq!(error.to_string(), "cannot look at /rubelet-t-missing");
    let error = bind(missing, missing).unwrap_err().to_string();
    assert_eq!(
        error,
        "cannot bind-mount /rubelet-t-missing on /rubelet-t-missing"
    );
}
