//! The paths of a pod's files. Touches no file.

use std::path::{Path, PathBuf};

use rubelet_api::volume_plugin::VolumePlugin;
use rubelet_base::PodUid;

pub(crate) const VOLUMES: &str = "volumes";
pub(crate) const SUB_PATHS: &str = "volume-subpaths";
pub(crate) const PLUGINS: &str = "plugins";

/// A name that can't be used as one component of a path.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid directory name {0:?}: it is empty, too long, `.`, `..` or contains a slash")]
pub struct UnsafeName(String);

/// The directory of one pod, `<root>/pods/<uid>`. Names that would lead out of it are rejected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodDirs {
    pods: PathBuf,
    uid: String,
    pod: PathBuf,
}

/// The directory of all pods: `<root>/pods`.
#[must_use]
pub(crate) fn pods_dir(root: &Path) -> PathBuf {
    root.join("pods")
}

impl PodDirs {
    /// The directory of a pod below `root`, which is `/var/lib/kubelet` by default.
    ///
    /// # Errors
    /// The UID is not a valid directory name.
    pub fn new(root: &Path, uid: &PodUid) -> Result<Self, UnsafeName> {
        let uid = component(uid.as_str())?;
        let pods = pods_dir(root);
        Ok(Self {
            pod: pods.join(uid),
            pods,
            uid: uid.to_owned(),
        })
    }

    /// The directory of all pods.
    #[must_use]
    pub fn pods(&self) -> &Path {
        &self.pods
    }

    /// The pod's UID, which names its directory.
    #[must_use]
    pub fn uid(&self) -> &str {
        &self.uid
    }

    /// The pod's directory.
    #[must_use]
    pub fn pod(&self) -> &Path {
        &self.pod
    }

    /// `volumes`: a directory for each plugin, in it one for each volume.
    #[must_use]
    pub fn volumes(&self) -> PathBuf {
        self.pod.join(VOLUMES)
    }

    /// `plugins`: plugins' records about volumes.
    #[must_use]
    pub fn plugins(&self) -> PathBuf {
        self.pod.join(PLUGINS)
    }

    /// `etc-hosts`: mounted on `/etc/hosts` of the containers.
    #[must_use]
    pub fn etc_hosts(&self) -> PathBuf {
        self.pod.join("etc-hosts")
    }

    /// The directory of an `emptyDir`.
    ///
    /// # Errors
    /// The volume's name is not a valid directory name.
    pub fn empty_dir(&self, volume: &str) -> Result<PathBuf, UnsafeName> {
        self.volume(VolumePlugin::EmptyDir, volume)
    }

    /// The directory whose file `ready` marks an `emptyDir` as complete.
    ///
    /// # Errors
    /// As [`Self::empty_dir`].
    pub(crate) fn empty_dir_marker(&self, volume: &str) -> Result<PathBuf, UnsafeName> {
        Ok(self
            .plugins()
            .join(VolumePlugin::EmptyDir.directory())
            .join(component(volume)?))
    }

    /// The directory of a volume.
    ///
    /// # Errors
    /// As [`Self::empty_dir`].
    pub fn volume(&self, plugin: VolumePlugin, volume: &str) -> Result<PathBuf, UnsafeName> {
        let dir = self.volumes().join(plugin.directory());
        Ok(dir.join(component(volume)?))
    }

    /// As [`Self::empty_dir_marker`], for the directory or tmpfs that holds a volume of another
    /// plugin.
    ///
    /// # Errors
    /// As [`Self::empty_dir`].
    pub(crate) fn wrapped_marker(&self, volume: &str) -> Result<PathBuf, UnsafeName> {
        self.empty_dir_marker(&format!("wrapped_{volume}"))
    }

    /// Where a container's `subPath` of a volume is mounted. `index` is the position in the
    /// container's `volumeMounts`.
    ///
    /// # Errors
    /// A name is not a valid directory name.
    pub fn sub_path(
        &self,
        volume: &str,
        container: &str,
        index: usize,
    ) -> Result<PathBuf, UnsafeName> {
        let dir = self.pod.join(SUB_PATHS).join(component(volume)?);
        Ok(dir.join(component(container)?).join(index.to_string()))
    }

    /// The directory of a container's termination messages.
    ///
    /// # Errors
    /// The container's name is not a valid directory name.
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
mod tests;
