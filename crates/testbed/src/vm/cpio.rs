//! The initramfs archive: cpio in the `newc` format, as the kernel's `initramfs-buffer-format`
//! describes it.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path};

const DIRECTORY: u32 = 0o040_000;
const REGULAR: u32 = 0o100_000;

/// An archive that is being written. Parent directories are added automatically.
pub(super) struct Archive {
    out: BufWriter<File>,
    written: usize,
    entries: u32,
    directories: BTreeSet<String>,
}

impl Archive {
    pub(super) fn create(path: &Path) -> io::Result<Self> {
        Ok(Self {
            out: BufWriter::new(File::create(path)?),
            written: 0,
            entries: 0,
            directories: BTreeSet::new(),
        })
    }

    /// A file with this content; `name` is an absolute path.
    pub(super) fn file(&mut self, name: &str, content: &[u8], mode: u32) -> io::Result<()> {
        self.directories_above(name)?;
        self.entry(name, REGULAR | mode, content)
    }

    /// A copy of a file, with its mode.
    pub(super) fn copy(&mut self, name: &str, source: &Path) -> io::Result<()> {
        let mode = std::fs::metadata(source)?.mode() & 0o777;
        self.file(name, &std::fs::read(source)?, mode)
    }

    pub(super) fn directory(&mut self, name: &str) -> io::Result<()> {
        self.directories_above(&format!("{name}/x"))
    }

    /// Writes the end.
    pub(super) fn finish(mut self) -> io::Result<()> {
        self.entry("TRAILER!!!", 0, &[])?;
        self.out.flush()
    }

    fn directories_above(&mut self, name: &str) -> io::Result<()> {
        let mut path = String::new();
        let above = Path::new(name).parent().unwrap_or(Path::new(""));
        for component in above.components() {
            let Component::Normal(component) = component else {
                continue;
            };
            path.push('/');
            path.push_str(&component.to_string_lossy());
            if self.directories.insert(path.clone()) {
                self.entry(&path, DIRECTORY | 0o755, &[])?;
            }
        }
        Ok(())
    }

    fn entry(&mut self, name: &str, mode: u32, content: &[u8]) -> io::Result<()> {
        let name = name.trim_start_matches('/');
        self.entries += 1;
        let links = if mode & DIRECTORY == DIRECTORY { 2 } else { 1 };
        let length = |length: usize| u32::try_from(length).map_err(io::Error::other);
        // Inode, mode, owner, group, links, time, size, two devices of two numbers, length of the
        // name with its zero, checksum.
        let fields = [
            self.entries,
            mode,
            0,
            0,
            links,
            0,
            length(content.len())?,
            0,
            0,
            0,
            0,
            length(name.len() + 1)?,
            0,
        ];
        let mut header = String::from("070701");
        for field in fields {
            header.push_str(&format!("{field:08X}"));
        }
        self.put(header.as_bytes())?;
        self.put(name.as_bytes())?;
        self.put(&[0])?;
        self.pad()?;
        self.put(content)?;
        self.pad()
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.written += bytes.len();
        self.out.write_all(bytes)
    }

    fn pad(&mut self) -> io::Result<()> {
        let missing = self.written.next_multiple_of(4) - self.written;
        self.put(&[0; 4][..missing])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::stdout_of;
    use std::process::Command;

    #[test]
    fn another_program_can_read_the_archive() {
        let dir = tempfile::Builder::new()
            .prefix("rbt-vm-")
            .tempdir()
            .unwrap();
        let path = dir.path().join("archive");
        let mut archive = Archive::create(&path).unwrap();
        archive.file("/etc/motd", b"hello", 0o640).unwrap();
        archive.directory("/proc").unwrap();
        archive.finish().unwrap();
        let script = "cd \"$0\" && busybox cpio -id 2>/dev/null < archive && cat etc/motd && \
                      stat -c ' %a' etc/motd && test -d proc";
        let shown = stdout_of(Command::new("sh").args(["-c", script]).arg(dir.path())).unwrap();
        assert_eq!(shown, "hello 640\n");
    }
}
