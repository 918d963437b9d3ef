//! Reads the kernel's small files into one buffer.

use std::{
    fs::File,
    io::{self, Read},
    path::{Path, PathBuf},
};

use super::StatsError;

/// A directory of a cgroup and the buffer that its files are read into.
pub(super) struct Reader {
    dir: PathBuf,
    text: String,
}

impl Reader {
    pub(super) fn new(dir: PathBuf) -> Self {
        Self {
            dir,
            text: String::with_capacity(2048),
        }
    }

    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    /// The text of a required file.
    pub(super) fn text(&mut self, name: &str) -> Result<&str, StatsError> {
        let file = self.dir.join(name);
        self.text.clear();
        let read = File::open(&file).and_then(|mut open| open.read_to_string(&mut self.text));
        match read {
            Ok(_) => Ok(&self.text),
            Err(source) => Err(StatsError::Read { file, source }),
        }
    }

    /// The text of a file that may be missing or disabled.
    pub(super) fn optional(&mut self, name: &str) -> Result<Option<&str>, StatsError> {
        let missing = match self.text(name) {
            Ok(_) => false,
            Err(StatsError::Read { source, .. }) if is_missing(&source) => true,
            Err(error) => return Err(error),
        };
        Ok((!missing).then_some(self.text.as_str()))
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
