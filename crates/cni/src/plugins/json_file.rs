//! JSON files of other programs: configurations, and results of other runtimes.

use std::{
    fs,
    io::{self, Read},
    os::unix::fs::OpenOptionsExt,
    path::Path,
};

use rustix::fs::OFlags;

/// Maximum size of a file, in bytes. A result contains a configuration and a plugin's response.
const MAX_SIZE: u64 = 16 << 20;

/// Reads a regular file.
///
/// # Errors
/// It is not a regular file (reading a FIFO might block forever), is too large, or can't be read.
pub(super) fn read(path: &Path) -> io::Result<Vec<u8>> {
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = fs::OpenOptions::new()
        .read(true)
        .custom_flags(flags.bits().cast_signed())
        .open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    let mut bytes = Vec::new();
    file.take(MAX_SIZE + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_SIZE {
        return Err(io::Error::other(format!(
            "larger than {} MiB",
            MAX_SIZE >> 20
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
        large.set_len(MAX_SIZE + 1).unwrap();
        assert!(read(&path).unwrap_err().to_string().contains("16 MiB"));
        // Without a writer, reading it would wait forever.
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
