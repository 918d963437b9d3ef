//! Making and removing log folders and files. Calls block; they touch a few directory entries.

mod within;

use std::{
    ffi::OsStr,
    fs, io,
    path::{Path, PathBuf},
};

use rubelet_base::{PodName, PodUid};

use crate::layout::{LayoutError, PodLogDir, attempt_of, log_name};

/// Why a log folder could not be made, read or removed.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// A name that can't be part of the path.
    #[error("log folder has no valid name")]
    Layout(#[from] LayoutError),
    /// The file system refused.
    #[error("{action} {}", path.display())]
    Io {
        /// What was tried, such as `create log folder`.
        action: &'static str,
        /// Where.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
}

impl FolderError {
    fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io {
            action,
            path: path.to_owned(),
            source,
        }
    }
}

/// Makes the log folder of a pod with mode 0755, and those above it.
///
/// # Errors
/// The file system refuses, or something else has the name.
pub fn create_pod_log_dir(dir: &PodLogDir) -> Result<(), FolderError> {
    let made = within::make_pod_dir(dir.path()).map(drop);
    made.map_err(FolderError::io(CREATE, dir.path()))
}

/// Makes the log folder of one container with mode 0755, and those above it.
///
/// # Errors
/// A container name that is no file name, the file system refuses, or something else has one of the
/// names.
pub fn create_container_log_dir(dir: &PodLogDir, container: &str) -> Result<(), FolderError> {
    let path = dir.container(container)?;
    let made = within::make_pod_dir(dir.path()).and_then(|pod| within::make_dir(&pod, container));
    made.map(drop).map_err(FolderError::io(CREATE, &path))
}

const CREATE: &str = "create log folder";

/// Removes the log folder of a pod with all logs in it. One that is not there is no error.
/// Symbolic links are removed, never followed.
///
/// # Errors
/// The file system refuses.
pub fn remove_pod_log_dir(dir: &PodLogDir) -> Result<(), FolderError> {
    match fs::remove_dir_all(dir.path()) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(FolderError::io("remove log folder", dir.path())(error))
        }
        _ => Ok(()),
    }
}

/// Removes the logs of one attempt of a container: the current file and the rotated ones.
///
/// # Errors
/// The file system refuses; what could be removed is gone.
pub fn remove_container_logs(
    dir: &PodLogDir,
    container: &str,
    attempt: u32,
) -> Result<(), FolderError> {
    let folder = dir.container(container)?;
    let failed = |action| FolderError::io(action, &folder);
    let opened = match within::container_dir(dir.path(), OsStr::new(container)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        opened => opened.map_err(failed(READ))?,
    };
    let current = log_name(attempt);
    let mut result = Ok(());
    for name in within::names(&opened).map_err(failed(READ))? {
        let ours = name
            .strip_prefix(&*current)
            .is_some_and(|s| s.is_empty() || s.starts_with('.'));
        if ours && let Err(error) = within::remove_file(&opened, &name) {
            result = Err(FolderError::io("remove log", &folder.join(&name))(error));
        }
    }
    result
}

const READ: &str = "read log folder";

/// The attempt after the highest one that left a log behind, rotated ones included; 0 if there is
/// none. It numbers a container whose earlier attempts the runtime has forgotten.
///
/// # Errors
/// The folder is there and can't be read.
pub fn next_attempt(dir: &PodLogDir, container: &str) -> Result<u32, FolderError> {
    let names = names(&dir.container(container)?)?;
    let next = |name: &String| attempt_of(name).map(|attempt| attempt.saturating_add(1));
    Ok(names.iter().filter_map(next).max().unwrap_or(0))
}

/// The pods that have a log folder below `root`. Other entries are left out.
///
/// # Errors
/// `root` is there and can't be read.
pub fn list_pod_log_dirs(root: &Path) -> Result<Vec<(PodName, PodUid, PodLogDir)>, FolderError> {
    let mut found: Vec<_> = names(root)?
        .iter()
        .filter_map(|name| PodLogDir::from_found(root, name))
        .collect();
    found.retain(|(_, _, dir)| fs::symlink_metadata(dir.path()).is_ok_and(|meta| meta.is_dir()));
    found.sort();
    Ok(found)
}

/// Names in a folder that are UTF-8; none if the folder is not there.
pub(crate) fn names(folder: &Path) -> Result<Vec<String>, FolderError> {
    let failed = || FolderError::io(READ, folder);
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed()(error)),
    };
    let mut names = Vec::new();
    for entry in entries {
        names.extend(entry.map_err(failed())?.file_name().into_string());
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};

    use super::*;

    fn pod_dir(root: &Path) -> PodLogDir {
        PodLogDir::new(root, &PodName::new("default", "web"), &PodUid::from("u")).expect("a name")
    }

    #[test]
    fn folders_are_open_to_log_collectors() {
        let root = tempfile::tempdir().unwrap();
        let dir = pod_dir(&root.path().join("pods"));
        create_container_log_dir(&dir, "main").unwrap();
        create_container_log_dir(&dir, "main").unwrap();
        for path in [dir.path().to_owned(), dir.path().join("main")] {
            assert_eq!(
                fs::metadata(&path).unwrap().permissions().mode() & 0o7777,
                0o755
            );
        }
    }

    #[test]
    fn a_container_whose_history_is_lost_is_numbered_after_its_logs() {
        let root = tempfile::tempdir().unwrap();
        let dir = pod_dir(root.path());
        assert_eq!(next_attempt(&dir, "main").unwrap(), 0);
        create_container_log_dir(&dir, "main").unwrap();
        assert_eq!(next_attempt(&dir, "main").unwrap(), 0);
        for name in ["0.log", "2.log.20240101-000000.gz", "notes.txt"] {
            fs::write(dir.path().join("main").join(name), "").unwrap();
        }
        assert_eq!(next_attempt(&dir, "main").unwrap(), 3);
    }

    #[test]
    fn removing_an_attempt_leaves_the_others() {
        let root = tempfile::tempdir().unwrap();
        let dir = pod_dir(root.path());
        create_container_log_dir(&dir, "main").unwrap();
        for name in ["1.log", "1.log.20240101-000000", "11.log", "2.log"] {
            fs::write(dir.path().join("main").join(name), "").unwrap();
        }
        remove_container_logs(&dir, "main", 1).unwrap();
        let mut left = names(&dir.path().join("main")).unwrap();
        left.sort();
        assert_eq!(left, ["11.log", "2.log"]);
        remove_container_logs(&dir, "other", 0).unwrap();
    }

    /// What a container does that mounts the folder of all logs.
    #[test]
    fn links_in_the_place_of_log_folders_make_and_remove_nothing_elsewhere() {
        let root = tempfile::tempdir().unwrap();
        let host = root.path().join("host");
        fs::create_dir_all(host.join("main")).unwrap();
        fs::write(host.join("main/0.log"), "").unwrap();
        fs::set_permissions(&host, fs::Permissions::from_mode(0o700)).unwrap();
        let pods = root.path().join("pods");
        let dir = pod_dir(&pods);

        create_pod_log_dir(&dir).unwrap();
        symlink(host.join("main"), dir.path().join("main")).unwrap();
        assert!(create_container_log_dir(&dir, "main").is_err());
        assert!(remove_container_logs(&dir, "main", 0).is_err());

        fs::remove_dir_all(dir.path()).unwrap();
        symlink(&host, dir.path()).unwrap();
        assert!(create_pod_log_dir(&dir).is_err());
        assert!(create_container_log_dir(&dir, "other").is_err());
        assert!(remove_container_logs(&dir, "main", 0).is_err());
        assert!(host.join("main/0.log").exists() && !host.join("other").exists());
        assert_eq!(fs::metadata(&host).unwrap().mode() & 0o777, 0o700);

        // Links above are the administrator's.
        symlink(&pods, root.path().join("logs")).unwrap();
        fs::remove_file(dir.path()).unwrap();
        create_container_log_dir(&pod_dir(&root.path().join("logs")), "main").unwrap();
        assert!(dir.path().join("main").is_dir());
    }

    #[test]
    fn removing_a_pods_logs_follows_no_link() {
        let root = tempfile::tempdir().unwrap();
        let outside = root.path().join("outside");
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("keep"), "").unwrap();
        let pods = root.path().join("pods");
        let dir = pod_dir(&pods);
        create_pod_log_dir(&dir).unwrap();
        symlink(&outside, dir.path().join("main")).unwrap();
        fs::create_dir(pods.join("lost+found")).unwrap();
        let listed: Vec<_> = list_pod_log_dirs(&pods)
            .unwrap()
            .into_iter()
            .map(|(pod, _, _)| pod)
            .collect();
        assert_eq!(listed, [PodName::new("default", "web")]);
        remove_pod_log_dir(&dir).unwrap();
        remove_pod_log_dir(&dir).unwrap();
        assert!(!dir.path().exists());
        assert!(outside.join("keep").exists());
    }
}
