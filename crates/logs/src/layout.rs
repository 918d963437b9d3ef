//! Names of log directories, files and links, exactly as the kubelet lays them out:
//! `PODS/NAMESPACE_NAME_UID/CONTAINER/ATTEMPT.log` and
//! `LINKS/NAME_NAMESPACE_CONTAINER-ID.log`. No effects.

use std::path::{Path, PathBuf};

use rubelet_base::{ContainerId, PodName, PodUid};

/// Maximum length of a file name in common file systems.
const MAX_NAME_BYTES: usize = 255;

/// A directory name that would leave its parent directory or that is not valid in a file system.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LayoutError {
    /// A part contains a slash or a zero byte, or is empty, `.` or `..`.
    #[error("invalid {what} {value:?}: cannot be part of a log path")]
    Component {
        /// Which part: namespace, name, uid or container.
        what: &'static str,
        /// Its value.
        value: String,
    },
    /// The directory of a pod would have a name of more than 255 bytes.
    #[error(
        "log directory name {0:?} is longer than 255 bytes; shorten the pod's name or namespace"
    )]
    TooLong(String),
}

/// The log directory of one pod, known to be a direct child of the pod log directory.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PodLogDir(PathBuf);

impl PodLogDir {
    /// `ROOT/NAMESPACE_NAME_UID`.
    ///
    /// # Errors
    /// A part is not valid in a file name, or the name is longer than 255 bytes.
    pub fn new(root: &Path, pod: &PodName, uid: &PodUid) -> Result<Self, LayoutError> {
        component("namespace", &pod.namespace)?;
        component("name", &pod.name)?;
        component("uid", uid.as_str())?;
        let name = format!("{}_{}_{}", pod.namespace, pod.name, uid.as_str());
        if name.len() > MAX_NAME_BYTES {
            return Err(LayoutError::TooLong(name));
        }
        Ok(Self(root.join(name)))
    }

    /// A directory found below `root`: the name and UID of its pod, and the directory. `None` if
    /// the name is not that of a pod's directory.
    #[must_use]
    pub(crate) fn from_found(root: &Path, name: &str) -> Option<(PodName, PodUid, Self)> {
        let (namespace, rest) = name.split_once('_')?;
        let (pod, uid) = rest.split_once('_')?;
        let (pod, uid) = (PodName::new(namespace, pod), PodUid::from(uid));
        let directory = Self::new(root, &pod, &uid).ok()?;
        Some((pod, uid, directory))
    }

    /// The directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The directory of one container's logs.
    ///
    /// # Errors
    /// The container's name can't be a file name.
    pub fn container(&self, container: &str) -> Result<PathBuf, LayoutError> {
        component("container", container)?;
        Ok(self.0.join(container))
    }

    /// The log of one attempt of a container.
    ///
    /// # Errors
    /// The container's name can't be a file name.
    pub fn log(&self, container: &str, attempt: u32) -> Result<PathBuf, LayoutError> {
        Ok(self.container(container)?.join(log_name(attempt)))
    }
}

/// `ATTEMPT.log`.
#[must_use]
pub(crate) fn log_name(attempt: u32) -> String {
    format!("{attempt}.log")
}

/// The attempt whose log, rotated or not, has this file name.
#[must_use]
pub(crate) fn attempt_of(file_name: &str) -> Option<u32> {
    let (attempt, rest) = file_name.split_once(".log")?;
    let digits = !attempt.is_empty() && attempt.bytes().all(|byte| byte.is_ascii_digit());
    let tail = rest.is_empty() || rest.starts_with('.');
    (digits && tail).then(|| attempt.parse().ok())?
}

/// Suffix of compressed rotated files.
pub(crate) const COMPRESSED: &str = ".gz";
/// Suffix of a file that is being compressed.
pub(crate) const PARTIAL: &str = ".tmp";

/// A rotated file of a log, with the suffix `YYYYMMDD-HHMMSS` of its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rotated<'a> {
    /// As the runtime wrote it.
    Plain(&'a str),
    /// Compressed with gzip.
    Compressed(&'a str),
    /// Being compressed, or left over from an interrupted compression.
    Partial(&'a str),
}

impl<'a> Rotated<'a> {
    /// The time of the rotation in the file name: later files have a larger suffix.
    #[must_use]
    pub fn suffix(self) -> &'a str {
        match self {
            Self::Plain(suffix) | Self::Compressed(suffix) | Self::Partial(suffix) => suffix,
        }
    }
}

/// The kind of the rotated file `name` of the log `log`; `None` if it is not a rotated file of it.
#[must_use]
pub fn rotated<'a>(log: &str, name: &'a str) -> Option<Rotated<'a>> {
    let rest = name.strip_prefix(log)?.strip_prefix('.')?;
    let found = if let Some(at) = rest.strip_suffix(COMPRESSED) {
        (at, Rotated::Compressed(at))
    } else if let Some(at) = rest.strip_suffix(PARTIAL) {
        (at, Rotated::Partial(at))
    } else {
        (rest, Rotated::Plain(rest))
    };
    is_rotation_suffix(found.0).then_some(found.1)
}

/// True for the suffix of rotated files: `YYYYMMDD-HHMMSS`. Compressed and temporary files have
/// another suffix and are excluded.
#[must_use]
pub fn is_rotation_suffix(suffix: &str) -> bool {
    suffix.len() == "20060102-150405".len()
        && suffix.bytes().enumerate().all(|(at, byte)| match at {
            8 => byte == b'-',
            _ => byte.is_ascii_digit(),
        })
}

/// Name of the link to a container's log: truncated to 255 bytes with its suffix, as upstream does.
#[must_use]
pub fn link_name(pod: &PodName, container: &str, id: &ContainerId) -> String {
    const SUFFIX: &str = ".log";
    let mut name = format!("{}_{}_{container}-{}", pod.name, pod.namespace, id.as_str());
    let mut end = name.len().min(MAX_NAME_BYTES - SUFFIX.len());
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    name.truncate(end);
    name + SUFFIX
}

fn component(what: &'static str, value: &str) -> Result<(), LayoutError> {
    let bad = value.is_empty() || matches!(value, "." | "..") || value.contains(['/', '\0']);
    if bad {
        Err(LayoutError::Component {
            what,
            value: value.to_owned(),
        })
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests;
