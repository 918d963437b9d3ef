//! Tests of `dirs`.

use super::*;

fn dirs() -> PodDirs {
    PodDirs::new(Path::new("/var/lib/kubelet"), &PodUid::from("u1")).unwrap()
}

#[test]
fn paths_are_those_of_the_kubelet() {
    let dirs = dirs();
    let below = |path: &str| Path::new("/var/lib/kubelet/pods/u1").join(path);
    assert_eq!(dirs.pod(), below(""));
    assert_eq!(dirs.volumes(), below("volumes"));
    assert_eq!(dirs.plugins(), below("plugins"));
    assert_eq!(dirs.etc_hosts(), below("etc-hosts"));
    let empty_dir = below("volumes/kubernetes.io~empty-dir/cache");
    assert_eq!(dirs.empty_dir("cache").unwrap(), empty_dir);
    let marker = below("plugins/kubernetes.io~empty-dir/cache");
    assert_eq!(dirs.empty_dir_marker("cache").unwrap(), marker);
    assert_eq!(
        dirs.sub_path("cache", "web", 2).unwrap(),
        below("volume-subpaths/cache/web/2")
    );
    assert_eq!(dirs.container("web").unwrap(), below("containers/web"));
}

#[test]
fn names_that_lead_elsewhere_are_refused() {
    for name in [
        "",
        ".",
        "..",
        "/",
        "/etc",
        "a/b",
        "../x",
        "a\0b",
        &"x".repeat(256),
    ] {
        assert!(
            PodDirs::new(Path::new("/r"), &PodUid::from(name)).is_err(),
            "{name:?}"
        );
        let dirs = dirs();
        assert!(dirs.empty_dir(name).is_err(), "{name:?}");
        assert!(dirs.empty_dir_marker(name).is_err(), "{name:?}");
        assert!(dirs.container(name).is_err(), "{name:?}");
        assert!(dirs.sub_path(name, "c", 0).is_err(), "{name:?}");
        assert!(dirs.sub_path("v", name, 0).is_err(), "{name:?}");
    }
}
