//! `hostPath`: a path of the host, checked as its `type` asks for.

mod create;

use std::{
    fs::{self, FileType},
    io,
    os::unix::fs::FileTypeExt,
    path::{Path, PathBuf},
};

use rubelet_api::volume::HostPathCheck;

/// Why a path of the host is not what it should be.
#[derive(Debug, thiserror::Error)]
pub enum HostPathError {
    /// It is not there, or is something else.
    #[error("hostPath type check failed: {} is not a {kind}", path.display())]
    Kind {
        /// The path.
        path: PathBuf,
        /// What it should be.
        kind: &'static str,
    },
    /// It was to be made and can't be.
    #[error("cannot create the hostPath {}", path.display())]
    Create {
        /// The path.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// Checks a path, following symbolic links, and makes what is to be made.
///
/// # Errors
/// See [`HostPathError`].
pub fn check(path: &Path, check: HostPathCheck) -> Result<(), HostPathError> {
    let missing =
        || matches!(fs::metadata(path), Err(error) if error.kind() == io::ErrorKind::NotFound);
    let failed = |source| HostPathError::Create {
        path: path.to_owned(),
        source,
    };
    match check {
        HostPathCheck::DirectoryOrCreate if missing() => {
            return create::directory(path).map_err(failed);
        }
        HostPathCheck::FileOrCreate if missing() && create::file(path).map_err(failed)? => {
            return Ok(());
        }
        _ => {}
    }
    let (kind, is): (_, fn(&FileType) -> bool) = match check {
        // What is missing is made by the runtime, as a folder.
        HostPathCheck::Unchecked => return Ok(()),
        HostPathCheck::DirectoryOrCreate | HostPathCheck::Directory => {
            ("directory", FileType::is_dir)
        }
        HostPathCheck::FileOrCreate | HostPathCheck::File => ("file", FileType::is_file),
        HostPathCheck::Socket => ("socket file", FileType::is_socket),
        HostPathCheck::CharDevice => ("character device", FileType::is_char_device),
        HostPathCheck::BlockDevice => ("block device", FileType::is_block_device),
    };
    if fs::metadata(path).is_ok_and(|found| is(&found.file_type())) {
        return Ok(());
    }
    Err(HostPathError::Kind {
        path: path.to_owned(),
        kind,
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::{fs::symlink, net::UnixListener};

    use HostPathCheck::{
        BlockDevice, CharDevice, Directory, DirectoryOrCreate, File, FileOrCreate, Socket,
        Unchecked,
    };

    use super::*;
    use crate::{folder, test_support::Scratch};

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
        assert_eq!(folder::mode(&dir).unwrap(), 0o755);
        let file = dir.join("f");
        check(&file, FileOrCreate).unwrap();
        assert_eq!(folder::mode(&file).unwrap(), 0o644);

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
}
