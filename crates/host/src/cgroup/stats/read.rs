//! Reads the kernel's small files into one buffer.

use std::{
    io,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
};

use rustix::{
    buffer::spare_capacity,
    fs::{Mode, OFlags, open, openat},
    io::read,
};

use super::{PidsStats, StatsError, StatsScope};

/// Bytes that most files fit into.
const USUAL: usize = 4096;

/// A directory of a cgroup and the buffer that its files are read into.
pub(super) struct Reader {
    dir: PathBuf,
    /// The directory, if several files are read: then the kernel looks for it once.
    opened: Option<OwnedFd>,
    text: Vec<u8>,
}

impl Reader {
    /// For one file or two.
    pub(super) fn new(dir: PathBuf) -> Self {
        Self {
            dir,
            opened: None,
            text: Vec::with_capacity(USUAL),
        }
    }

    /// For several files.
    pub(super) fn open(dir: PathBuf) -> Self {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        // One that can't be opened is reported with its first file.
        let opened = open(&dir, flags, Mode::empty()).ok();
        Self {
            opened,
            ..Self::new(dir)
        }
    }

    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    /// The text of a required file.
    pub(super) fn text(&mut self, name: &str) -> Result<&str, StatsError> {
        let read = self
            .read(name)
            .and_then(|()| std::str::from_utf8(&self.text).map_err(io::Error::other));
        read.map_err(|source| StatsError::Read {
            file: self.dir.join(name),
            source,
        })
    }

    fn read(&mut self, name: &str) -> io::Result<()> {
        let (flags, mode) = (OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty());
        let file = match &self.opened {
            Some(dir) => openat(dir, name, flags, mode)?,
            None => open(self.dir.join(name), flags, mode)?,
        };
        self.text.clear();
        loop {
            self.text.reserve(USUAL / 2);
            if read(&file, spare_capacity(&mut self.text))? == 0 {
                return Ok(());
            }
        }
    }

    /// The text of a file that may be missing or disabled.
    pub(super) fn optional(&mut self, name: &str) -> Result<Option<&str>, StatsError> {
        match self.text(name) {
            Ok(text) => Ok(Some(text)),
            Err(StatsError::Read { source, .. }) if is_missing(&source) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The only number of a file; `None` for `max`.
    pub(super) fn number(&mut self, name: &str) -> Result<Option<u64>, StatsError> {
        Ok(self.text(name)?.trim().parse().ok())
    }

    /// Like [`Self::number`], for a file that may be missing.
    pub(super) fn optional_number(&mut self, name: &str) -> Result<Option<u64>, StatsError> {
        let text = self.optional(name)?;
        Ok(text.and_then(|text| text.trim().parse().ok()))
    }

    /// The files of the pids controller, which are the same in both versions.
    pub(super) fn pids(&mut self, scope: StatsScope) -> Result<PidsStats, StatsError> {
        Ok(PidsStats {
            current: self.number("pids.current")?.unwrap_or_default(),
            limit: match scope {
                StatsScope::All => self.number("pids.max")?,
                StatsScope::Usage => None,
            },
        })
    }
}

/// EOPNOTSUPP means that pressure was disabled on the kernel's command line.
fn is_missing(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(libc::EOPNOTSUPP)
}

/// The lines `name value` of a file.
pub(super) fn fields(text: &str) -> impl Iterator<Item = (&str, u64)> {
    text.lines().filter_map(|line| {
        let (name, value) = line.split_once(' ')?;
        Some((name, value.trim().parse().ok()?))
    })
}

/// A device in the kernel's format: `254:0`.
pub(super) fn device(text: &str) -> Option<(u32, u32)> {
    let (major, minor) = text.split_once(':')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// Page sizes among the files of the hugetlb controller, from names such as `hugetlb.2MB.max`.
pub(super) fn page_sizes(dir: &Path, suffix: &str) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(dir) else {
        return Vec::new();
    };
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut sizes: Vec<String> = names
        .filter_map(|name| {
            let size = name.strip_prefix("hugetlb.")?.strip_suffix(suffix)?;
            // Not the reservations, which have an additional component.
            (!size.contains('.')).then(|| size.to_owned())
        })
        .collect();
    sizes.sort();
    sizes
}
