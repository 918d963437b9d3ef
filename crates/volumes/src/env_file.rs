//! Environment files in volumes, which containers may have written: read by descriptor, within the
//! volume, and up to a limit.

use std::{
    fs::File,
    io::{self, Read as _},
    os::fd::AsRawFd as _,
    path::Path,
};

use rustix::{
    fs::{CWD, FileType, Mode, OFlags, ResolveFlags, fstat, openat2},
    io::Errno,
};

/// Maximum size of an environment file.
pub const MAX_BYTES: u64 = 64 << 10;

/// A rename in the volume can make openat2(2) fail with EAGAIN.
const TRIES: usize = 100;

/// The text of a file in a volume; `None` if it does not exist. Links are followed within the
/// volume. Bytes that are not UTF-8 are replaced.
///
/// # Errors
/// It is not a regular file, it has more than [`MAX_BYTES`], or the disk fails.
pub fn read(volume: &Path, path: &str) -> io::Result<Option<String>> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let volume = rustix::fs::openat(CWD, volume, flags, Mode::empty())?;
    let within = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
    let mut tries = 0..TRIES;
    let found = loop {
        // First with O_PATH: a FIFO or a device must not even be opened.
        match openat2(
            &volume,
            path,
            OFlags::PATH | OFlags::CLOEXEC,
            Mode::empty(),
            within,
        ) {
            Err(Errno::AGAIN | Errno::INTR) if tries.next().is_some() => {}
            Err(Errno::NOENT) => return Ok(None),
            opened => break opened?,
        }
    };
    if FileType::from_raw_mode(fstat(&found)?.st_mode) != FileType::RegularFile {
        return Err(io::Error::other("not a regular file"));
    }
    let file = File::open(format!("/proc/self/fd/{}", found.as_raw_fd()))?;
    let mut bytes = Vec::new();
    file.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(io::Error::other(format!("larger than {MAX_BYTES} bytes")));
    }
    Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink};

    use super::*;

    #[test]
    fn only_short_regular_files_of_the_volume_are_read() {
        let dir = tempfile::tempdir().unwrap();
        let volume = dir.path().join("volume");
        fs::create_dir_all(volume.join("sub")).unwrap();
        fs::write(dir.path().join("secret"), "S='1'").unwrap();
        fs::write(volume.join("sub/env"), "A='1'").unwrap();
        symlink("sub/env", volume.join("inside")).unwrap();
        symlink("../secret", volume.join("above")).unwrap();
        symlink(dir.path().join("secret"), volume.join("absolute")).unwrap();
        let pipe = volume.join("pipe");
        let mode = Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(CWD, &pipe, FileType::Fifo, mode, 0).unwrap();
        fs::write(volume.join("long"), vec![b'#'; 64 << 10]).unwrap();
        fs::write(volume.join("longer"), vec![b'#'; (64 << 10) + 1]).unwrap();
        let read = |path: &str| read(&volume, path).map_err(drop);
        assert_eq!(read("sub/env"), Ok(Some("A='1'".to_owned())));
        assert_eq!(read("inside"), Ok(Some("A='1'".to_owned())));
        assert_eq!(read("above"), Ok(None));
        assert_eq!(read("absolute"), Ok(None));
        assert_eq!(read("nothing"), Ok(None));
        assert!(read("long").unwrap().is_some());
        for bad in ["pipe", "sub", "longer"] {
            assert_eq!(read(bad), Err(()), "{bad}");
        }
    }
}
