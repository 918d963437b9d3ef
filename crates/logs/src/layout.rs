//! Names of log folders, files and links, exactly as the kubelet lays them out:
//! `PODS/NAMESPACE_NAME_UID/CONTAINER/ATTEMPT.log` and
//! `LINKS/NAME_NAMESPACE_CONTAINER-ID.log`. No effects.

use std::path::{Path, PathBuf};

use rubelet_base::{ContainerId, PodName, PodUid};

/// Default of `podLogsDir`.
pub const POD_LOGS_DIR: &str = "/var/log/pods";

/// Where log collectors of old look for links. No option changes it.
pub const LINKS_DIR: &str = "/var/log/containers";

/// Longest file name of the file systems in use.
const MAX_NAME_BYTES: usize = 255;

/// A folder name that would leave its parent folder or that no file system takes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LayoutError {
    /// A part has a slash or a zero byte, is empty, `.` or `..`.
    #[error("{what} {value:?} can't be part of a log path")]
    Component {
        /// Which part: namespace, name, uid or container.
        what: &'static str,
        /// Its value.
        value: String,
    },
    /// The folder of a pod would have a name of more than 255 bytes.
    #[error("log folder name {0:?} is longer than 255 bytes; shorten the pod's name or namespace")]
    TooLong(String),
}

/// The log folder of one pod, known to be a direct child of the pod log folder.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PodLogDir(PathBuf);

impl PodLogDir {
    /// `ROOT/NAMESPACE_NAME_UID`.
    ///
    /// # Errors
    /// A part that can't be part of a file name, or a name longer than 255 bytes.
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

    /// A folder found below `root`: the name and UID of its pod, and the folder. `None` for names
    /// that no pod's folder has.
    #[must_use]
    pub fn from_found(root: &Path, name: &str) -> Option<(PodName, PodUid, Self)> {
        let (namespace, rest) = name.split_once('_')?;
        let (pod, uid) = rest.split_once('_')?;
        let (pod, uid) = (PodName::new(namespace, pod), PodUid::from(uid));
        let folder = Self::new(root, &pod, &uid).ok()?;
        Some((pod, uid, folder))
    }

    /// The folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The folder of one container's logs.
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

/// `log_path` of a container in the CRI: the log relative to the sandbox's `log_directory`.
#[must_use]
pub fn relative_log_path(container: &str, attempt: u32) -> String {
    format!("{container}/{}", log_name(attempt))
}

/// `ATTEMPT.log`.
#[must_use]
pub fn log_name(attempt: u32) -> String {
    format!("{attempt}.log")
}

/// The attempt whose log, rotated or not, has this file name.
#[must_use]
pub fn attempt_of(file_name: &str) -> Option<u32> {
    let (attempt, rest) = file_name.split_once(".log")?;
    let digits = !attempt.is_empty() && attempt.bytes().all(|byte| byte.is_ascii_digit());
    let tail = rest.is_empty() || rest.starts_with('.');
    (digits && tail).then(|| attempt.parse().ok())?
}

/// True for the suffix that rotation gives: `YYYYMMDD-HHMMSS`. Compressed and half-made files have
/// a further suffix and are not meant.
#[must_use]
pub fn is_rotation_suffix(suffix: &str) -> bool {
    suffix.len() == "20060102-150405".len()
        && suffix.bytes().enumerate().all(|(at, byte)| match at {
            8 => byte == b'-',
            _ => byte.is_ascii_digit(),
        })
}

/// Name of the link to a container's log: cut to 255 bytes with its suffix, as upstream does.
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
mod tests {
    use super::*;

    fn dir(namespace: &str, name: &str, uid: &str) -> Result<PodLogDir, LayoutError> {
        PodLogDir::new(
            Path::new("/logs"),
            &PodName::new(namespace, name),
            &PodUid::from(uid),
        )
    }

    #[test]
    fn logs_lie_where_the_kubelet_puts_them() {
        let dir = dir("default", "web-node1", "abc").expect("a good name");
        assert_eq!(dir.path(), Path::new("/logs/default_web-node1_abc"));
        assert_eq!(
            dir.log("nginx", 3).expect("a good name"),
            Path::new("/logs/default_web-node1_abc/nginx/3.log")
        );
        assert_eq!(relative_log_path("nginx", 3), "nginx/3.log");
    }

    #[test]
    fn no_name_leads_out_of_the_log_folder() {
        for (namespace, name, uid) in [
            ("default", "web", "../../etc"),
            ("a/b", "web", "u"),
            ("default", "", "u"),
            ("d", "w", "u\0"),
        ] {
            assert!(matches!(
                dir(namespace, name, uid),
                Err(LayoutError::Component { .. })
            ));
        }
        let good = dir("default", "web", "u").expect("a good name");
        assert!(good.log("..", 0).is_err());
        assert!(matches!(
            dir("default", &"n".repeat(253), "u"),
            Err(LayoutError::TooLong(_))
        ));
    }

    #[test]
    fn a_found_folder_tells_its_pod() {
        let (pod, uid, found) =
            PodLogDir::from_found(Path::new("/logs"), "default_web-n_u_1").expect("a pod's folder");
        assert_eq!(
            (pod.to_string().as_str(), uid.as_str()),
            ("default/web-n", "u_1")
        );
        assert_eq!(found.path(), Path::new("/logs/default_web-n_u_1"));
        for other in ["lost+found", "default_web", "_web_u", ".."] {
            assert_eq!(
                PodLogDir::from_found(Path::new("/logs"), other),
                None,
                "{other}"
            );
        }
    }

    #[test]
    fn attempts_are_read_from_current_rotated_and_compressed_logs() {
        for (name, attempt) in [
            ("0.log", Some(0)),
            ("12.log", Some(12)),
            ("3.log.20240101-000000", Some(3)),
            ("3.log.20240101-000000.gz", Some(3)),
            ("3.logs", None),
            ("x.log", None),
            (".log", None),
            ("+1.log", None),
            ("99999999999.log", None),
        ] {
            assert_eq!(attempt_of(name), attempt, "{name}");
        }
    }

    #[test]
    fn only_plain_rotated_files_have_a_rotation_suffix() {
        assert!(is_rotation_suffix("20240131-235959"));
        for other in [
            "20240131-235959.gz",
            "20240131_235959",
            "bak",
            "",
            "2024013-2359599",
        ] {
            assert!(!is_rotation_suffix(other), "{other}");
        }
    }

    #[test]
    fn link_names_are_cut_to_what_file_systems_take() {
        let id = ContainerId::from("0123456789abcdef");
        let pod = PodName::new("default", "web");
        assert_eq!(
            link_name(&pod, "nginx", &id),
            "web_default_nginx-0123456789abcdef.log"
        );
        let long = link_name(&PodName::new("default", &"p".repeat(250)), "nginx", &id);
        assert_eq!(long.len(), 255);
        assert!(long.ends_with(".log"));
    }
}
