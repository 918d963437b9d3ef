//! Tests of `host_path`.

use std::os::unix::{fs::symlink, net::UnixListener};

use HostPathCheck::{
    BlockDevice, CharDevice, Directory, DirectoryOrCreate, File, FileOrCreate, Socket, Unchecked,
};

use super::*;
use crate::{directory, test_support::Scratch};

const ALL: [HostPathCheck; 8] = [
    Unchecked,
    DirectoryOrCreate,
    Directory,
    FileOrCreate,
    File,
    Socket,
    CharDevice,
    BlockDevice,
];

#[test]
fn each_type_takes_its_kind_of_file_and_no_other() {
    let scratch = Scratch::new();
    let path = |name: &str| scratch.path().join(name);
    fs::create_dir(path("dir")).unwrap();
    fs::write(path("file"), "").unwrap();
    let _listener = UnixListener::bind(path("socket")).unwrap();
    symlink("dir", path("link")).unwrap();
    for (path, fitting) in [
        (path("dir"), &[Unchecked, DirectoryOrCreate, Directory][..]),
        (path("link"), &[Unchecked, DirectoryOrCreate, Directory]),
        (path("file"), &[Unchecked, FileOrCreate, File]),
        (path("socket"), &[Unchecked, Socket]),
        (PathBuf::from("/dev/null"), &[Unchecked, CharDevice]),
    ] {
        for kind in ALL {
            let answer = check(&path, kind);
            assert_eq!(
                answer.is_ok(),
                fitting.contains(&kind),
                "{} {kind:?}",
                path.display()
            );
        }
    }
}

#[test]
fn messages_are_those_of_the_kubelet() {
    let path = Path::new("/rubelet-t-missing");
    for (kind, name) in [
        (Directory, "directory"),
        (File, "file"),
        (Socket, "socket file"),
        (CharDevice, "character device"),
        (BlockDevice, "block device"),
    ] {
        let text = check(path, kind).unwrap_err().to_string();
        assert_eq!(
            text,
            format!("hostPath type check failed: /rubelet-t-missing is not a {name}")
        );
    }
    assert!(check(path, Unchecked).is_ok());
    assert!(!path.exists());
}

#[test]
fn what_is_missing_is_made_where_the_type_says_so() {
    let scratch = Scratch::new();
    let dir = scratch.path().join("a/b");
    check(&dir, DirectoryOrCreate).unwrap();
    assert_eq!(directory::mode(&dir).unwrap(), 0o755);
    let file = dir.join("f");
    check(&file, FileOrCreate).unwrap();
    assert_eq!(directory::mode(&file).unwrap(), 0o644);

    let dangling = scratch.path().join("dangling");
    symlink(scratch.path().join("nowhere"), &dangling).unwrap();
    let text = check(&dangling, FileOrCreate).unwrap_err().to_string();
    assert!(text.ends_with("is not a file"), "{text}");
    assert!(check(&dangling, DirectoryOrCreate).is_err());

    let text = check(&scratch.path().join("no/f"), FileOrCreate)
        .unwrap_err()
        .to_string();
    assert!(text.starts_with("cannot create the hostPath "), "{text}");
    let text = check(&file.join("below"), DirectoryOrCreate)
        .unwrap_err()
        .to_string();
    assert!(text.ends_with("is not a directory"), "{text}");
}
