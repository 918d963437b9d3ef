//! Where the files of a pod are. Paths only; nothing is touched.

use std::path::{Path, PathBuf};

use rubelet_base::PodUid;

/// Name of the plugin `kubernetes.io/empty-dir` as a folder.
pub(crate) const EMPTY_DIR_PLUGIN: &str = "kubernetes.io~empty-dir";
pub(crate) const VOLUMES: &str = "volumes";
pub(crate) const SUB_PATHS: &str = "volume-subpaths";
pub(crate) const PLUGINS: &str = "plugins";

/// A name that can't be used as one component of a path.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` can't be the name of a folder: it is empty, too long, `.`, `..` or has a slash")]
pub struct UnsafeName(String);

/// The folder of one pod, `<root>/pods/<uid>`. It can't lie anywhere else: names that could lead
/// out of it are refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodDirs {
    pods: PathBuf,
    uid: String,
    pod: PathBuf,
}

/// The folder of all pods: `<root>/pods`.
#[must_use]
pub fn pods_dir(root: &Path) -> PathBuf {
    root.join("pods")
}

impl PodDirs {
    /// The folder of a pod below `root`, which is `/var/lib/kubelet` by default.
    ///
    /// # Errors
    /// The UID can't be the name of a folder.
    pub fn new(root: &Path, uid: &PodUid) -> Result<Self, UnsafeName> {
        let uid = component(uid.as_str())?;
        let pods = pods_dir(root);
        Ok(Self {
            pod: pods.join(uid),
            pods,
            uid: uid.to_owned(),
        })
    }

    /// The folder of all pods.
    #[must_use]
    pub fn pods(&self) -> &Path {
        &self.pods
    }

    /// The pod's UID, which names its folder.
    #[must_use]
    pub fn uid(&self) -> &str {
        &self.uid
    }

    /// The pod's folder.
    #[must_use]
    pub fn pod(&self) -> &Path {
        &self.pod
    }

    /// `volumes`: a folder for each plugin, in it one for each volume.
    #[must_use]
    pub fn volumes(&self) -> PathBuf {
        self.pod.join(VOLUMES)
    }

    /// `plugins`: what plugins note about volumes.
    #[must_use]
    pub fn plugins(&self) -> PathBuf {
        self.pod.join(PLUGINS)
    }

    /// `etc-hosts`: mounted on `/etc/hosts` of the containers.
    #[must_use]
    pub fn etc_hosts(&self) -> PathBuf {
        self.pod.join("etc-hosts")
    }

    /// The folder of an `emptyDir`.
    ///
    /// # Errors
    /// The volume's name can't be the name of a folder.
    pub fn empty_dir(&self, volume: &str) -> Result<PathBuf, UnsafeName> {
        Ok(self
            .volumes()
            .join(EMPTY_DIR_PLUGIN)
            .join(component(volume)?))
    }

    /// The folder whose file `ready` tells that an `emptyDir` is complete.
    ///
    /// # Errors
    /// As [`Self::empty_dir`].
    pub fn empty_dir_marker(&self, volume: &str) -> Result<PathBuf, UnsafeName> {
        Ok(self
            .plugins()
            .join(EMPTY_DIR_PLUGIN)
            .join(component(volume)?))
    }

    /// The folder of a volume that another plugin makes, such as `kubernetes.io~secret`.
    ///
    /// # Errors
    /// As [`Self::empty_dir`].
    pub fn volume(&self, plugin: &str, volume: &str) -> Result<PathBuf, UnsafeName> {
        let dir = self.volumes().join(component(plugin)?);
        Ok(dir.join(component(volume)?))
    }

    /// As [`Self::empty_dir_marker`], for the folder or tmpfs that holds a volume of another plugin.
    ///
    /// # Errors
    /// As [`Self::empty_dir`].
    pub fn wrapped_marker(&self, volume: &str) -> Result<PathBuf, UnsafeName> {
        self.empty_dir_marker(&format!("wrapped_{volume}"))
    }

    /// Where the part of a volume is mounted that a container wants by `subPath`. `index` is the
    /// position in the container's `volumeMounts`.
    ///
    /// # Errors
    /// A name can't be the name of a folder.
    pub fn sub_path(
        &self,
        volume: &str,
        container: &str,
        index: usize,
    ) -> Result<PathBuf, UnsafeName> {
        let dir = self.pod.join(SUB_PATHS).join(component(volume)?);
        Ok(dir.join(component(container)?).join(index.to_string()))
    }

    /// The folder of a container's termination messages.
    ///
    /// # Errors
    /// The container's name can't be the name of a folder.
    pub fn container(&self, container: &str) -> Result<PathBuf, UnsafeName> {
        Ok(self.pod.join("containers").join(component(container)?))
    }
}

fn component(name: &str) -> Result<&str, UnsafeName> {
    if matches!(name, "" | "." | "..") || name.len() > 255 || name.contains(['/', '\0']) {
        return Err(UnsafeName(name.to_owned()));
    }
    Ok(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dirs() -> PodDirs {
        PodDirs::new(Path::new("/var/lib/kubelet"), &PodUid::from("u1")).unwrap()
    }

    #[test]
    fn paths_are_those_of_the_kubelet() {
        let dirs = dirs();
        let below = |path: &str| Path::new("/var/lib/kubelet/pods/u1").join(path);
        assert_eq!(dirs.pod(), below(""));
        assert_eq!(dirs.volumes(), below("volumes"));
        assert_eq!(dirs.plugins(), below("plugins"));
        assert_eq!(dirs.etc_hosts(), below("etc-hosts"));
        let empty_dir = below("volumes/kubernetes.io~empty-dir/cache");
        assert_eq!(dirs.empty_dir("cache").unwrap(), empty_dir);
        let marker = below("plugins/kubernetes.io~empty-dir/cache");
        assert_eq!(dirs.empty_dir_marker("cache").unwrap(), marker);
        assert_eq!(
            dirs.sub_path("cache", "web", 2).unwrap(),
            below("volume-subpaths/cache/web/2")
        );
        assert_eq!(dirs.container("web").unwrap(), below("containers/web"));
    }

    #[test]
    fn names_that_lead_elsewhere_are_refused() {
        for name in [
            "",
            ".",
            "..",
            "/",
            "/etc",
            "a/b",
            "../x",
            "a\0b",
            &"x".repeat(256),
        ] {
            assert!(
                PodDirs::new(Path::new("/r"), &PodUid::from(name)).is_err(),
                "{name:?}"
            );
            let dirs = dirs();
            assert!(dirs.empty_dir(name).is_err(), "{name:?}");
            assert!(dirs.empty_dir_marker(name).is_err(), "{name:?}");
            assert!(dirs.container(name).is_err(), "{name:?}");
            assert!(dirs.sub_path(name, "c", 0).is_err(), "{name:?}");
            assert!(dirs.sub_path("v", name, 0).is_err(), "{name:?}");
        }
    }
}
