//! Files with JSON that others write: configurations, and results of other runtimes.

use std::{
    fs,
    io::{self, Read},
    os::unix::fs::OpenOptionsExt,
    path::Path,
};

use rustix::fs::OFlags;

/// The largest file that is read, in bytes. A result holds a configuration and an answer.
const LARGEST: u64 = 16 << 20;

/// Reads a regular file.
///
/// # Errors
/// It is something else, which might never end, it is too large, or it can't be read.
pub(super) fn read(path: &Path) -> io::Result<Vec<u8>> {
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = fs::OpenOptions::new()
        .read(true)
        .custom_flags(flags.bits().cast_signed())
        .open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is no regular file"));
    }
    let mut bytes = Vec::new();
    file.take(LARGEST + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LARGEST {
        return Err(io::Error::other(format!(
            "it is larger than {} MiB",
            LARGEST >> 20
        )));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_regular_files_of_a_size_are_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        fs::write(&path, "{}").unwrap();
        assert_eq!(read(&path).unwrap(), b"{}");
        let large = fs::File::create(&path).unwrap();
        large.set_len(LARGEST + 1).unwrap();
        assert!(read(&path).unwrap_err().to_string().contains("16 MiB"));
        // Nobody writes to it, and reading it would wait for ever.
        let pipe = dir.path().join("pipe");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &pipe,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR,
            0,
        )
        .unwrap();
        assert!(read(&pipe).unwrap_err().to_string().contains("regular"));
    }
}
