//! Tests of `directories`.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};

use super::*;

fn pod_dir(root: &Path) -> PodLogDir {
    PodLogDir::new(root, &PodName::new("default", "web"), &PodUid::from("u")).expect("a name")
}

/// The log directory of a pod, with one of a container.
fn create_with_container(dir: &PodLogDir, container: &str) {
    create_pod_log_dir(dir).unwrap();
    create_container_log_dir(dir, container).unwrap();
}

#[test]
fn directories_are_open_to_log_collectors() {
    let root = tempfile::tempdir().unwrap();
    let dir = pod_dir(&root.path().join("pods"));
    for _ in 0..2 {
        create_with_container(&dir, "main");
    }
    for path in [dir.path(), &dir.path().join("main")] {
        let mode = fs::metadata(path).unwrap().permissions().mode();
        assert_eq!(mode & 0o7777, 0o755);
    }
    let error = create_container_log_dir(&dir, "../other").unwrap_err();
    assert!(matches!(error, DirectoryError::Layout(_)), "{error}");
}

#[test]
fn a_container_whose_history_is_lost_is_numbered_after_its_logs() {
    let root = tempfile::tempdir().unwrap();
    let dir = pod_dir(root.path());
    assert_eq!(next_attempt(&dir, "main").unwrap(), 0);
    create_with_container(&dir, "main");
    assert_eq!(next_attempt(&dir, "main").unwrap(), 0);
    for name in ["0.log", "2.log.20240101-000000.gz", "notes.txt"] {
        fs::write(dir.path().join("main").join(name), "").unwrap();
    }
    assert_eq!(next_attempt(&dir, "main").unwrap(), 3);
}

#[test]
fn removing_an_attempt_leaves_the_others() {
    let root = tempfile::tempdir().unwrap();
    let dir = pod_dir(root.path());
    create_with_container(&dir, "main");
    for name in ["1.log", "1.log.20240101-000000", "11.log", "2.log"] {
        fs::write(dir.path().join("main").join(name), "").unwrap();
    }
    remove_container_logs(&dir, "main", 1).unwrap();
    let mut left = names(&dir.path().join("main")).unwrap();
    left.sort();
    assert_eq!(left, ["11.log", "2.log"]);
    remove_container_logs(&dir, "other", 0).unwrap();
}

/// What a container does that mounts the directory of all logs.
#[test]
fn links_instead_of_log_directories_are_not_followed() {
    let root = tempfile::tempdir().unwrap();
    let host = root.path().join("host");
    fs::create_dir_all(host.join("main")).unwrap();
    fs::write(host.join("main/0.log"), "").unwrap();
    fs::set_permissions(&host, fs::Permissions::from_mode(0o700)).unwrap();
    let pods = root.path().join("pods");
    let dir = pod_dir(&pods);

    create_pod_log_dir(&dir).unwrap();
    symlink(host.join("main"), dir.path().join("main")).unwrap();
    assert!(create_container_log_dir(&dir, "main").is_err());
    assert!(remove_container_logs(&dir, "main", 0).is_err());

    fs::remove_dir_all(dir.path()).unwrap();
    symlink(&host, dir.path()).unwrap();
    assert!(create_pod_log_dir(&dir).is_err());
    assert!(remove_container_logs(&dir, "main", 0).is_err());
    assert!(host.join("main/0.log").exists());
    assert_eq!(fs::metadata(&host).unwrap().mode() & 0o777, 0o700);

    // Links above are the administrator's.
    symlink(&pods, root.path().join("logs")).unwrap();
    fs::remove_file(dir.path()).unwrap();
    create_pod_log_dir(&pod_dir(&root.path().join("logs"))).unwrap();
    assert!(dir.path().is_dir());
}

#[test]
fn removing_a_pods_logs_follows_no_link() {
    let root = tempfile::tempdir().unwrap();
    let outside = root.path().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("keep"), "").unwrap();
    let pods = root.path().join("pods");
    let dir = pod_dir(&pods);
    create_pod_log_dir(&dir).unwrap();
    symlink(&outside, dir.path().join("main")).unwrap();
    fs::create_dir(pods.join("lost+found")).unwrap();
    let listed: Vec<_> = list_pod_log_dirs(&pods)
        .unwrap()
        .into_iter()
        .map(|(pod, _, _)| pod)
        .collect();
    assert_eq!(listed, [PodName::new("default", "web")]);
    remove_pod_log_dir(&dir).unwrap();
    remove_pod_log_dir(&dir).unwrap();
    assert!(!dir.path().exists());
    assert!(outside.join("keep").exists());
}
