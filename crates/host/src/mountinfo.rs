//! `/proc/self/mountinfo`: the mount table, in mount order.

use std::{
    ffi::OsString,
    io,
    os::unix::ffi::OsStringExt,
    path::{Path, PathBuf},
};

/// One mount. See proc_pid_mountinfo(5).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MountEntry {
    /// Identifier of the mount.
    pub id: u64,
    /// Identifier of the mount it is mounted on.
    pub parent: u64,
    /// The mounted directory of the file system; `/` unless it is a bind mount.
    pub root: PathBuf,
    /// The mount point.
    pub mount_point: PathBuf,
    /// Options of this mount, separated by commas.
    pub options: String,
    /// Propagation: `shared:N`, `master:N`, `propagate_from:N`, `unbindable`; empty if private.
    pub propagation: Vec<String>,
    /// Type of the file system.
    pub fs_type: String,
    /// Device or other source.
    pub source: String,
    /// Options of the file system, separated by commas.
    pub super_options: String,
}

impl MountEntry {
    /// Whether mounts on it propagate to other namespaces.
    #[must_use]
    pub fn is_shared(&self) -> bool {
        self.propagation
            .iter()
            .any(|tag| tag.starts_with("shared:"))
    }
}

/// Why the mount table can't be read.
#[derive(Debug, thiserror::Error)]
pub enum MountinfoError {
    /// The file can't be read.
    #[error("cannot read /proc/self/mountinfo")]
    Read(#[source] io::Error),
    /// A line does not have the documented format.
    #[error("line {line} of /proc/self/mountinfo is malformed: {text}")]
    Line {
        /// Number of the line, from 1.
        line: usize,
        /// The line.
        text: String,
    },
}

/// Reads the mounts of this process.
///
/// # Errors
/// See [`MountinfoError`].
pub fn read() -> Result<Vec<MountEntry>, MountinfoError> {
    let text = std::fs::read("/proc/self/mountinfo").map_err(MountinfoError::Read)?;
    parse(&text)
}

/// Parses the text of the file.
///
/// # Errors
/// A line is malformed.
pub fn parse(text: &[u8]) -> Result<Vec<MountEntry>, MountinfoError> {
    text.split(|&byte| byte == b'\n')
        .enumerate()
        .filter(|(_, line)| !line.is_empty())
        .map(|(index, line)| {
            parse_line(line).ok_or_else(|| MountinfoError::Line {
                line: index + 1,
                text: String::from_utf8_lossy(line).into_owned(),
            })
        })
        .collect()
}

fn parse_line(line: &[u8]) -> Option<MountEntry> {
    let mut fields = line.split(|&byte| byte == b' ');
    let mut next = || fields.next();
    let id = number(next()?)?;
    let parent = number(next()?)?;
    let _device = next()?;
    let root = path(next()?);
    let mount_point = path(next()?);
    let options = text(next()?);
    let mut propagation = Vec::new();
    loop {
        match next()? {
            b"-" => break,
            tag => propagation.push(text(tag)),
        }
    }
    let fs_type = text(next()?);
    let source = text(next()?);
    // Some file systems report an empty source or no options; the last field may be missing.
    let super_options = next().map(text).unwrap_or_default();
    Some(MountEntry {
        id,
        parent,
        root,
        mount_point,
        options,
        propagation,
        fs_type,
        source,
        super_options,
    })
}

fn number(field: &[u8]) -> Option<u64> {
    std::str::from_utf8(field).ok()?.parse().ok()
}

fn text(field: &[u8]) -> String {
    String::from_utf8_lossy(&unescape(field)).into_owned()
}

fn path(field: &[u8]) -> PathBuf {
    PathBuf::from(OsString::from_vec(unescape(field)))
}

/// Space, tab, newline and backslash are written as a backslash and three octal digits.
fn unescape(field: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((&byte, after)) = rest.split_first() {
        let octal = (byte == b'\\')
            .then(|| after.get(..3))
            .flatten()
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 8).ok());
        match octal {
            Some(value) => {
                out.push(value);
                rest = &after[3..];
            }
            None => {
                out.push(byte);
                rest = after;
            }
        }
    }
    out
}

/// The mounts at or below `dir`, in unmount order. `dir` must be free of symbolic links, as the
/// paths in mountinfo are.
#[must_use]
pub fn at_or_below<'a>(mounts: &'a [MountEntry], dir: &Path) -> Vec<&'a MountEntry> {
    let mut found: Vec<&MountEntry> = mounts
        .iter()
        .filter(|entry| entry.mount_point.starts_with(dir))
        .collect();
    // The file is in mount order, except for moved mounts; depth alone would not show which of two
    // mounts at one path is on top.
    found.reverse();
    found.sort_by_key(|entry| std::cmp::Reverse(entry.mount_point.components().count()));
    found
}

/// The mount that contains `path`, which must be free of symbolic links.
#[must_use]
pub fn containing<'a>(mounts: &'a [MountEntry], path: &Path) -> Option<&'a MountEntry> {
    // At one path the last mount covers the ones before it.
    mounts
        .iter()
        .filter(|entry| path.starts_with(&entry.mount_point))
        .max_by_key(|entry| entry.mount_point.components().count())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
27 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard
30 27 0:27 / /a rw shared:5 master:1 - tmpfs tmpfs rw,size=4k
31 30 0:28 /sub/dir /a/b\\040c\\134d rw,nosuid - tmpfs tmpfs rw
32 30 0:29 / /a rw unbindable - tmpfs none rw
33 27 0:30 / /ab rw - cgroup2  rw
";

    #[test]
    fn fields_and_escapes_are_read() {
        let mounts = parse(TEXT.as_bytes()).unwrap();
        assert_eq!(mounts.len(), 5);
        assert_eq!(mounts[0].propagation, [""; 0]);
        assert!(!mounts[0].is_shared());
        assert!(mounts[1].is_shared());
        assert_eq!(mounts[1].super_options, "rw,size=4k");
        assert_eq!(mounts[2].mount_point, Path::new("/a/b c\\d"));
        assert_eq!(mounts[2].root, Path::new("/sub/dir"));
        assert_eq!(
            (mounts[4].fs_type.as_str(), mounts[4].source.as_str()),
            ("cgroup2", "")
        );
    }

    #[test]
    fn a_malformed_line_is_named() {
        let error = parse(b"27 1 254:0 / / rw - ext4 x rw\nnonsense\n").unwrap_err();
        assert_eq!(
            error.to_string(),
            "line 2 of /proc/self/mountinfo is malformed: nonsense"
        );
    }

    #[test]
    fn mounts_below_a_directory_come_top_and_deepest_first() {
        let mounts = parse(TEXT.as_bytes()).unwrap();
        let ids = |dir: &str| -> Vec<u64> {
            at_or_below(&mounts, Path::new(dir))
                .iter()
                .map(|entry| entry.id)
                .collect()
        };
        assert_eq!(ids("/a"), [31, 32, 30]);
        assert_eq!(ids("/a/b c\\d/e"), [0; 0]);
        let on = |path: &str| containing(&mounts, Path::new(path)).map(|entry| entry.id);
        assert_eq!(on("/a/x"), Some(32));
        assert_eq!(on("/abc"), Some(27));
        assert_eq!(on("/ab/c"), Some(33));
    }

    #[test]
    fn the_mounts_of_this_process_can_be_read() {
        let mounts = read().unwrap();
        assert!(containing(&mounts, Path::new("/proc/self")).is_some());
    }
}
