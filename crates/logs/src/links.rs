//! The links `/var/log/containers/*.log` that log collectors of old follow. Calls block.

use std::{
    collections::BTreeSet,
    fs,
    hash::{DefaultHasher, Hash, Hasher},
    io,
    os::unix::fs::{DirBuilderExt, symlink},
    path::{Component, Path, PathBuf},
};

/// Why a link could not be made or removed.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// Something that is not a link has the link's name.
    #[error("{} is not a symbolic link; move it away", .0.display())]
    NotALink(PathBuf),
    /// The file system refused.
    #[error("{action} {}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// Where.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
}

impl LinkError {
    fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io {
            action,
            path: path.to_owned(),
            source,
        }
    }
}

/// Makes `folder/name` point to `log`, replacing a link that points elsewhere in one step. The
/// folder is made if it is not there.
///
/// # Errors
/// Something else has that name, or the file system refuses.
pub fn create_link(folder: &Path, name: &str, log: &Path) -> Result<(), LinkError> {
    let link = folder.join(name);
    let failed = || LinkError::io("create log link", &link);
    match fs::symlink_metadata(&link) {
        Ok(meta) if !meta.is_symlink() => return Err(LinkError::NotALink(link)),
        Ok(_) if fs::read_link(&link).is_ok_and(|target| target == log) => return Ok(()),
        _ => {}
    }
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o755)
        .create(folder)
        .map_err(failed())?;
    // Not a `.log` name, so that collectors which watch the folder never open it. Hashed, because
    // the name itself may already be as long as a name can be.
    let mut hasher = DefaultHasher::new();
    name.hash(&mut hasher);
    let fresh = folder.join(format!(".{:016x}.new", hasher.finish()));
    remove(&fresh)?;
    symlink(log, &fresh)
        .and_then(|()| fs::rename(&fresh, &link))
        .map_err(failed())
}

/// Removes a link. One that is not there is no error.
///
/// # Errors
/// Something that is not a link has that name, or the file system refuses.
pub fn remove_link(folder: &Path, name: &str) -> Result<(), LinkError> {
    let link = folder.join(name);
    match fs::symlink_metadata(&link) {
        Ok(meta) if !meta.is_symlink() => Err(LinkError::NotALink(link)),
        Ok(_) => remove(&link),
        Err(_) => Ok(()),
    }
}

/// Removes the links below `folder` whose log is gone, and returns their names. Only links that
/// point below `pod_logs` are looked at, all others are somebody else's. `keep` holds the names of
/// links of containers that have not exited: their log is away for a moment while it is rotated.
///
/// # Errors
/// The folder is there and can't be read. A single link that can't be removed is left for later.
pub fn remove_dangling_links(
    folder: &Path,
    pod_logs: &Path,
    keep: &BTreeSet<String>,
) -> Result<Vec<String>, LinkError> {
    let failed = || LinkError::io("read log link folder", folder);
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed()(error)),
    };
    let mut removed = Vec::new();
    for entry in entries {
        let entry = entry.map_err(failed())?;
        let Ok(name) = entry.file_name().into_string() else {
            continue;
        };
        let Ok(target) = fs::read_link(entry.path()) else {
            continue;
        };
        if keep.contains(&name) || !is_below(&target, pod_logs) {
            continue;
        }
        let gone =
            fs::symlink_metadata(&target).is_err_and(|e| e.kind() == io::ErrorKind::NotFound);
        if gone && remove(&entry.path()).is_ok() {
            removed.push(name);
        }
    }
    Ok(removed)
}

fn is_below(target: &Path, folder: &Path) -> bool {
    target.starts_with(folder) && !target.components().any(|part| part == Component::ParentDir)
}

fn remove(path: &Path) -> Result<(), LinkError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(LinkError::io("remove log link", path)(error))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_follows_the_newest_attempt() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("containers");
        for log in ["/logs/p/c/0.log", "/logs/p/c/1.log", "/logs/p/c/1.log"] {
            create_link(&folder, "p_ns_c-id.log", Path::new(log)).unwrap();
            assert_eq!(
                fs::read_link(folder.join("p_ns_c-id.log")).unwrap(),
                Path::new(log)
            );
        }
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
        remove_link(&folder, "p_ns_c-id.log").unwrap();
        remove_link(&folder, "p_ns_c-id.log").unwrap();
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
    }

    #[test]
    fn what_is_not_a_link_is_never_replaced_or_removed() {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("mine.log"), "precious").unwrap();
        let made = create_link(root.path(), "mine.log", Path::new("/logs/x"));
        assert!(matches!(made, Err(LinkError::NotALink(_))));
        assert!(matches!(
            remove_link(root.path(), "mine.log"),
            Err(LinkError::NotALink(_))
        ));
        assert_eq!(
            fs::read_to_string(root.path().join("mine.log")).unwrap(),
            "precious"
        );
    }

    #[test]
    fn the_longest_name_can_be_linked() {
        let root = tempfile::tempdir().unwrap();
        let name = "n".repeat(251) + ".log";
        create_link(root.path(), &name, Path::new("/logs/x")).unwrap();
        assert!(fs::symlink_metadata(root.path().join(name)).is_ok());
    }

    #[test]
    fn only_our_dangling_links_of_ended_containers_go() {
        let root = tempfile::tempdir().unwrap();
        let pods = root.path().join("pods");
        let folder = root.path().join("containers");
        fs::create_dir_all(pods.join("a")).unwrap();
        fs::create_dir_all(&folder).unwrap();
        fs::write(pods.join("a/0.log"), "").unwrap();
        for (name, target) in [
            ("alive.log", pods.join("a/0.log")),
            ("dead.log", pods.join("b/0.log")),
            ("rotating.log", pods.join("c/0.log")),
            ("foreign.log", root.path().join("elsewhere/0.log")),
            ("sly.log", pods.join("../elsewhere/0.log")),
        ] {
            symlink(target, folder.join(name)).unwrap();
        }
        fs::write(folder.join("file.log"), "").unwrap();
        let keep = BTreeSet::from(["rotating.log".to_owned()]);
        assert_eq!(
            remove_dangling_links(&folder, &pods, &keep).unwrap(),
            ["dead.log"]
        );
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 5);
        assert!(
            remove_dangling_links(&root.path().join("none"), &pods, &keep)
                .unwrap()
                .is_empty()
        );
    }
}
