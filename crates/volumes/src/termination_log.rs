//! The file for a container's termination message. It is mounted on the container's
//! `terminationMessagePath`; each start of a container has its own file.

use std::{
    fs::OpenOptions,
    hash::{BuildHasher, RandomState},
    io::{self, Read, Seek, SeekFrom},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use rustix::fs::OFlags;

use crate::{
    directory,
    dirs::{PodDirs, UnsafeName},
};

/// Maximum size of a message; of a longer one the end is kept.
pub const MAX_BYTES: u64 = 4096;

/// The file can't be created.
#[derive(Debug, thiserror::Error)]
pub enum TerminationLogError {
    /// The container's name can't be used.
    #[error(transparent)]
    Name(#[from] UnsafeName),
    /// The directory or the file can't be created.
    #[error("cannot create {}", path.display())]
    Create {
        /// The directory or file.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
}

/// Creates an empty file `containers/<name>/<8 hex digits>` that every user of the container may
/// write.
///
/// # Errors
/// See [`TerminationLogError`].
pub fn create(dirs: &PodDirs, container: &str) -> Result<PathBuf, TerminationLogError> {
    let dir = dirs.container(container)?;
    let at = |path: &Path| {
        let path = path.to_owned();
        move |source| TerminationLogError::Create { path, source }
    };
    directory::ensure(&dir, 0o750).map_err(at(&dir))?;
    // The hasher's keys are random; that is enough to make collisions rare.
    let random = RandomState::new();
    let mut attempt = 0u32;
    loop {
        let path = dir.join(format!("{:08x}", random.hash_one(attempt) & 0xffff_ffff));
        match OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o666)
            .open(&path)
        {
            Ok(_) => {
                directory::set_mode(&path, 0o666).map_err(at(&path))?;
                return Ok(path);
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && attempt < 1000 => {
                attempt += 1;
            }
            Err(error) => return Err(at(&path)(error)),
        }
    }
}

/// The end of the message, or `None` if the file is gone. Bytes that are not UTF-8 are replaced.
///
/// # Errors
/// The file can't be read, or is not a regular file.
pub fn read(path: &Path) -> io::Result<Option<String>> {
    // The path comes from the runtime. The file that is there now must neither block nor be
    // followed.
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let mut file = match OpenOptions::new().read(true).custom_flags(flags).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let found = file.metadata()?;
    if !found.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    file.seek(SeekFrom::Start(found.len().saturating_sub(MAX_BYTES)))?;
    let mut bytes = Vec::new();
    file.take(MAX_BYTES).read_to_end(&mut bytes)?;
    Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink};

    use super::*;
    use crate::test_support::Scratch;

    #[test]
    fn each_start_has_a_file_that_all_may_write() {
        let scratch = Scratch::new();
        let dirs = scratch.dirs();
        let files: Vec<PathBuf> = (0..10).map(|_| create(&dirs, "web").unwrap()).collect();
        for file in &files {
            assert_eq!(file.parent(), Some(&*dirs.pod().join("containers/web")));
            let name = file.file_name().unwrap().to_str().unwrap();
            assert!(
                name.len() == 8 && u32::from_str_radix(name, 16).is_ok(),
                "{name}"
            );
            assert_eq!(directory::mode(file).unwrap(), 0o666);
            assert_eq!(files.iter().filter(|other| *other == file).count(), 1);
        }
        assert_eq!(
            directory::mode(&dirs.container("web").unwrap()).unwrap(),
            0o750
        );
        fs::remove_file(&files[0]).unwrap();
        assert_eq!(read(&files[0]).unwrap(), None);
    }

    #[test]
    fn the_end_of_a_message_is_kept() {
        let scratch = Scratch::new();
        let file = create(&scratch.dirs(), "web").unwrap();
        let long = format!("{}{}", "a".repeat(5000), "b".repeat(4096));
        for (written, read_back) in [
            (&b""[..], ""),
            (b"no more work\n", "no more work\n"),
            (b"caf\xff", "caf\u{fffd}"),
            (long.as_bytes(), &long[5000..]),
        ] {
            fs::write(&file, written).unwrap();
            assert_eq!(read(&file).unwrap().as_deref(), Some(read_back));
        }
    }

    #[test]
    fn only_regular_files_are_read() {
        let scratch = Scratch::new();
        symlink("/etc/passwd", scratch.path().join("link")).unwrap();
        assert!(read(&scratch.path().join("link")).is_err());
        assert!(read(scratch.path()).is_err());
        assert!(read(Path::new("/dev/zero")).is_err());
    }
}
