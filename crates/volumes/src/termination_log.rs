//! The file for a container's termination message. It is mounted on the container's
//! `terminationMessagePath`; each start of a container has its own file.

use std::{
    fs::{self, Metadata, OpenOptions},
    io::{self, Read, Seek, SeekFrom},
    os::unix::fs::{MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use rustix::fs::OFlags;

use crate::{
    directory,
    dirs::{PodDirs, UnsafeName},
};

/// Maximum size of a message that is kept: its end.
pub const MAX_BYTES: u64 = 4096;

/// The permissions of the file.
const MODE: u32 = 0o666;

/// Why the file can't be made.
#[derive(Debug, thiserror::Error)]
pub enum TerminationLogError {
    /// The container's name can't be used.
    #[error(transparent)]
    Name(#[from] UnsafeName),
    /// The directory or the file can't be made.
    #[error("cannot create {}", path.display())]
    Create {
        /// The directory or file.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
}

/// Creates an empty file `containers/<name>/<restart count as 8 hex digits>` that every user of the
/// container may write. One that was made ahead, and that no container has used, is taken as it is: a
/// file system that writes its journal may keep the creation of a file waiting for long.
///
/// # Errors
/// See [`TerminationLogError`].
pub fn create(
    dirs: &PodDirs,
    container: &str,
    restart_count: u32,
) -> Result<PathBuf, TerminationLogError> {
    let dir = dirs.container(container)?;
    let at = |path: &Path| {
        let path = path.to_owned();
        move |source| TerminationLogError::Create { path, source }
    };
    let path = dir.join(format!("{restart_count:08x}"));
    match fs::symlink_metadata(&path) {
        Ok(found) if is_unused(&found) => return Ok(path),
        // An instance with this number was created before, and has perhaps run.
        Ok(_) => fs::remove_file(&path).map_err(at(&path))?,
        Err(_) => directory::ensure(&dir, 0o750).map_err(at(&dir))?,
    }
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(MODE)
        .open(&path)
        .map_err(at(&path))?;
    directory::set_mode(&path, MODE).map_err(at(&path))?;
    Ok(path)
}

fn is_unused(found: &Metadata) -> bool {
    found.is_file() && found.len() == 0 && found.nlink() == 1 && found.mode() & 0o7777 == MODE
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
        return Err(io::Error::other("it is not a regular file"));
    }
    file.seek(SeekFrom::Start(found.len().saturating_sub(MAX_BYTES)))?;
    let mut bytes = Vec::new();
    file.take(MAX_BYTES).read_to_end(&mut bytes)?;
    Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::test_support::Scratch;

    #[test]
    fn each_start_has_a_file_that_all_may_write() {
        let scratch = Scratch::new();
        let dirs = scratch.dirs();
        for count in [0, 1, 300] {
            let file = create(&dirs, "web", count).unwrap();
            let name = format!("containers/web/{count:08x}");
            assert_eq!(file, dirs.pod().join(name));
            assert_eq!(directory::mode(&file).unwrap(), 0o666);
        }
        let mode = directory::mode(&dirs.container("web").unwrap());
        assert_eq!(mode.unwrap(), 0o750);
    }

    #[test]
    fn a_file_that_was_made_ahead_is_taken_and_one_that_was_used_is_not() {
        let scratch = Scratch::new();
        let dirs = scratch.dirs();
        let inode = |file: &Path| fs::metadata(file).unwrap().ino();
        let ahead = create(&dirs, "web", 1).unwrap();
        let made = inode(&ahead);
        // What else has this inode must not be the next container's.
        let kept = scratch.path().join("kept");
        assert_eq!(create(&dirs, "web", 1).unwrap(), ahead);
        assert_eq!(inode(&ahead), made);
        for spoil in [
            |file: &Path, _: &Path| fs::write(file, "an earlier message").unwrap(),
            |file: &Path, kept: &Path| fs::hard_link(file, kept).unwrap(),
            |file: &Path, _: &Path| {
                fs::remove_file(file).unwrap();
                symlink("/etc/passwd", file).unwrap();
            },
        ] {
            spoil(&ahead, &kept);
            assert_eq!(create(&dirs, "web", 1).unwrap(), ahead);
            let found = fs::symlink_metadata(&ahead).unwrap();
            assert!(is_unused(&found), "{found:?}");
        }
    }

    #[test]
    fn the_end_of_a_message_is_kept() {
        let scratch = Scratch::new();
        let file = create(&scratch.dirs(), "web", 0).unwrap();
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
