//! Parts of volumes, mounted for real where the test runs as root.

use std::os::unix::fs::symlink;

use rubelet_base::ErrorChain;

use super::*;
use crate::test_support::Scratch;

fn request<'a>(volume_path: &'a Path, sub_path: &'a str) -> SubPathRequest<'a> {
    SubPathRequest {
        volume: "v",
        volume_path,
        container: "c",
        index: 0,
        sub_path,
    }
}

fn volume(scratch: &Scratch) -> PathBuf {
    let volume = scratch.path().join("volume");
    fs::create_dir(&volume).unwrap();
    directory::set_mode(&volume, 0o777).unwrap();
    volume
}

#[test]
fn paths_that_climb_are_refused() {
    let scratch = Scratch::new();
    let volume = volume(&scratch);
    for path in ["/etc", "..", "a/../..", "../x", "a/..", "", "/"] {
        let error = prepare(&scratch.dirs(), &request(&volume, path)).unwrap_err();
        assert!(
            error.to_string().starts_with("unable to provision SubPath"),
            "{path}: {error}"
        );
    }
}

#[test]
fn missing_directories_get_the_mode_of_the_volume() {
    let Some(scratch) = Scratch::as_root() else {
        return;
    };
    let volume = volume(&scratch);
    directory::set_mode(&volume, 0o2775).unwrap();
    let target = prepare(&scratch.dirs(), &request(&volume, "a/./b")).unwrap();
    assert_eq!(target, scratch.dirs().pod().join("volume-subpaths/v/c/0"));
    for dir in ["a", "a/b"] {
        assert_eq!(directory::mode(&volume.join(dir)).unwrap(), 0o2775, "{dir}");
    }
    fs::write(volume.join("a/b/f"), "seen").unwrap();
    assert_eq!(fs::read_to_string(target.join("f")).unwrap(), "seen");
}

#[test]
fn a_second_run_keeps_the_mount_and_another_path_replaces_it() {
    let Some(scratch) = Scratch::as_root() else {
        return;
    };
    let volume = volume(&scratch);
    fs::write(volume.join("file"), "seen").unwrap();
    let dirs = scratch.dirs();
    for (path, is_dir) in [("a", true), ("b", true), ("file", false), ("a", true)] {
        for _ in 0..2 {
            let target = prepare(&dirs, &request(&volume, path)).unwrap();
            assert_eq!(target.is_dir(), is_dir, "{path}");
            assert_eq!(scratch.mounts().len(), 1, "{path}");
            let (source, mounted) = (
                volume.join(path).metadata().unwrap(),
                target.metadata().unwrap(),
            );
            assert_eq!(
                (source.dev(), source.ino()),
                (mounted.dev(), mounted.ino()),
                "{path}"
            );
        }
    }
}

#[test]
fn links_stay_within_the_volume() {
    let Some(scratch) = Scratch::as_root() else {
        return;
    };
    let volume = volume(&scratch);
    fs::create_dir(volume.join("real")).unwrap();
    fs::write(volume.join("real/f"), "").unwrap();
    fs::create_dir(scratch.path().join("secret")).unwrap();
    for (link, to) in [
        ("relative", "real"),
        ("absolute", "/real"),
        ("climbing", "../../../real"),
        ("outside", "../secret"),
        ("host", scratch.path().join("secret").to_str().unwrap()),
        ("magic", "/proc/self/root"),
    ] {
        symlink(to, volume.join(link)).unwrap();
    }
    let dirs = scratch.dirs();
    for path in ["relative", "absolute", "climbing", "relative/new"] {
        let target = prepare(&dirs, &request(&volume, path)).unwrap();
        assert_eq!(target.join("f").exists(), path != "relative/new", "{path}");
    }
    assert!(volume.join("real/new").is_dir());
    for path in ["outside", "host", "magic", "outside/x", "host/x"] {
        let error = prepare(&dirs, &request(&volume, path)).unwrap_err();
        let text = ErrorChain(&error).to_string();
        assert!(text.contains("No such file or directory"), "{path}: {text}");
    }
    assert_eq!(
        fs::read_dir(scratch.path().join("secret")).unwrap().count(),
        0
    );
}

#[test]
fn a_path_below_a_file_is_an_error_that_names_it() {
    let scratch = Scratch::new();
    let volume = volume(&scratch);
    fs::write(volume.join("f"), "").unwrap();
    let error = prepare(&scratch.dirs(), &request(&volume, "f/x")).unwrap_err();
    let text = ErrorChain(&error).to_string();
    assert!(
        text.starts_with("failed to prepare subPath `f/x` of volume v: Not a dir"),
        "{text}"
    );
    let missing = scratch.path().join("missing");
    let error = prepare(&scratch.dirs(), &request(&missing, "x")).unwrap_err();
    assert!(
        error.to_string().starts_with("cannot open the volume at "),
        "{error}"
    );
}
