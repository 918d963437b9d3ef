//! A directory as `/var/log` is, and what a hostile container can put into it.

use std::{fs, io::Read as _, os::unix::fs::symlink, path::Path};

use rustix::fs::{CWD, FileType as Kind, Mode as Bits};

use super::*;

fn directory() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().join("log");
    let pod = root.join("pods/default_web_1/app");
    fs::create_dir_all(&pod).unwrap();
    fs::create_dir_all(root.join("containers")).unwrap();
    fs::write(root.join("syslog"), "a line\n").unwrap();
    fs::write(pod.join("0.log"), "of a container\n").unwrap();
    fs::write(directory.path().join("secret"), "s3cret").unwrap();
    symlink(pod.join("0.log"), root.join("containers/web.log")).unwrap();
    symlink("../pods/default_web_1", root.join("containers/pod")).unwrap();
    directory
}

fn at(directory: &tempfile::TempDir, path: &str) -> Result<String, String> {
    let root = directory.path().join("log");
    let names: Vec<&str> = path.split('/').filter(|name| !name.is_empty()).collect();
    match open(&root, &names) {
        Ok(SystemLogEntry::Directory(names)) => Ok(names.join(" ")),
        Ok(SystemLogEntry::File(mut file, length)) => {
            let mut text = String::new();
            file.read_to_string(&mut text).unwrap();
            assert_eq!(u64::try_from(text.len()).unwrap(), length);
            Ok(text)
        }
        Err(error) => Err(error.to_string()),
    }
}

#[test]
fn files_and_directories_are_shown_and_links_within() {
    let directory = directory();
    for (path, expected) in [
        ("", "containers/ pods/ syslog"),
        ("pods", "default_web_1/"),
        ("syslog", "a line\n"),
        ("pods/default_web_1/app/0.log", "of a container\n"),
        ("containers/web.log", "of a container\n"),
        ("containers/pod", "app/"),
    ] {
        assert_eq!(at(&directory, path).as_deref(), Ok(expected), "{path}");
    }
    for path in ["missing", "syslog/x", "pods/missing/x", &"x".repeat(300)] {
        assert_eq!(at(&directory, path).unwrap_err(), "there is no such file");
    }
}

#[test]
fn nothing_leads_out() {
    let directory = directory();
    let root = directory.path().join("log");
    let secret = directory.path().join("secret");
    let link = |target: &Path, name: &str| symlink(target, root.join(name)).unwrap();
    link(&secret, "absolute");
    link(Path::new("../secret"), "relative");
    link(Path::new("pods/../../secret"), "winding");
    link(Path::new("relative"), "link-to-link");
    link(directory.path(), "directory");
    link(Path::new("/"), "root");
    link(Path::new("itself"), "itself");
    link(Path::new("/proc/self/root/etc/passwd"), "magic");
    // Only the last part of a path may be a link.
    link(Path::new("pods"), "through");
    rustix::fs::mknodat(CWD, root.join("fifo"), Kind::Fifo, Bits::RWXU, 0).unwrap();
    for path in [
        "absolute",
        "relative",
        "winding",
        "link-to-link",
        "directory",
        "directory/secret",
        "root",
        "root/etc/passwd",
        "itself",
        "magic",
        "through/default_web_1",
        "fifo",
        "../secret",
    ] {
        let shown = at(&directory, path);
        let why = "only files and directories below the directory of logs are shown";
        assert_eq!(shown.unwrap_err(), why, "{path}");
    }
}
