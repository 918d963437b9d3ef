//! Creates all volumes of a pod, before its first container is created.

use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
};

use rubelet_api::{
    objects::PodObjects,
    pod::Pod,
    resources::Bytes,
    volume::{Volume, VolumeSource},
};

use crate::{
    directory,
    dirs::PodDirs,
    empty_dir::{self, EmptyDirError, EmptyDirRequest, quota},
    host_path::{self, HostPathError},
    observe::{VolumeObserver, observed},
    projection::{self, ProjectionError},
    settings::VolumeSettings,
};

/// The volumes of a pod, ready to be mounted into containers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MountedVolumes {
    /// The path of each volume on the host, by name.
    pub paths: BTreeMap<Box<str>, PathBuf>,
    /// Warnings for the operator; the volumes are usable.
    pub warnings: Vec<String>,
}

impl MountedVolumes {
    /// The path of a volume on the host.
    #[must_use]
    pub fn path(&self, volume: &str) -> Option<&Path> {
        self.paths.get(volume).map(PathBuf::as_path)
    }
}

/// A volume can't be set up; the reason of the event is `FailedMount`.
#[derive(Debug, thiserror::Error)]
pub enum VolumeError {
    /// A directory of the pod can't be created.
    #[error("error making pod data directories: {}", path.display())]
    PodDir {
        /// The directory.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
    /// An `emptyDir` can't be created.
    #[error("MountVolume.SetUp failed for volume \"{volume}\" ")]
    EmptyDir {
        /// Name of the volume.
        volume: Box<str>,
        /// The error.
        source: EmptyDirError,
    },
    /// A `hostPath` fails its type check.
    #[error("MountVolume.SetUp failed for volume \"{volume}\" ")]
    HostPath {
        /// Name of the volume.
        volume: Box<str>,
        /// The error.
        source: HostPathError,
    },
    /// A `configMap`, `secret`, `downwardAPI` or `projected` can't be created or updated.
    #[error("MountVolume.SetUp failed for volume \"{volume}\" ")]
    Projection {
        /// Name of the volume.
        volume: Box<str>,
        /// The error.
        source: ProjectionError,
    },
}

/// Creates the pod's directories and volumes. Existing ones are kept; files built from objects or
/// from the pod itself are updated atomically per volume, and not changed if they are current. The
/// observer is told of each volume but those of images, which the runtime prepares.
///
/// # Errors
/// The first volume that can't be created. The others are created nevertheless, and the next
/// attempt finds them.
pub fn prepare(
    pod: &Pod,
    dirs: &PodDirs,
    settings: &VolumeSettings,
    objects: &PodObjects,
    observer: VolumeObserver<'_>,
) -> Result<MountedVolumes, VolumeError> {
    for path in [dirs.pod().to_owned(), dirs.volumes(), dirs.plugins()] {
        directory::ensure(&path, 0o750).map_err(|source| VolumeError::PodDir { path, source })?;
    }
    let mut mounted = MountedVolumes::default();
    let mut failed = None;
    for volume in &pod.spec.volumes {
        match one(pod, volume, dirs, settings, objects, observer) {
            Ok(Some((path, warning))) => {
                mounted.warnings.extend(warning);
                mounted.paths.insert(volume.name.clone(), path);
            }
            Ok(None) => {}
            Err(error) => failed = failed.or(Some(error)),
        }
    }
    failed.map_or(Ok(mounted), Err)
}

/// Updates the files of a prepared pod that are built from objects or from the pod itself, and
/// nothing else: containers are using it.
///
/// # Errors
/// The first volume that can't be updated. The others are updated nevertheless.
pub fn refresh(
    pod: &Pod,
    dirs: &PodDirs,
    settings: &VolumeSettings,
    objects: &PodObjects,
    observer: VolumeObserver<'_>,
) -> Result<(), VolumeError> {
    let mut failed = None;
    let has_files = |volume: &&Volume| volume.source.files().is_some();
    for volume in pod.spec.volumes.iter().filter(has_files) {
        if let Err(error) = one(pod, volume, dirs, settings, objects, observer) {
            failed = failed.or(Some(error));
        }
    }
    failed.map_or(Ok(()), Err)
}

/// The path of a volume, and a warning for the operator; `None`: the runtime prepares it.
type MadeVolume = Option<(PathBuf, Option<String>)>;

/// Creates one volume, and tells how that went.
fn one(
    pod: &Pod,
    volume: &Volume,
    dirs: &PodDirs,
    settings: &VolumeSettings,
    objects: &PodObjects,
    observer: VolumeObserver<'_>,
) -> Result<MadeVolume, VolumeError> {
    if matches!(volume.source, VolumeSource::Image { .. }) {
        return Ok(None);
    }
    observed(
        observer,
        volume.source.plugin(),
        || make(pod, volume, dirs, settings, objects),
        Result::is_ok,
    )
}

fn make(
    pod: &Pod,
    volume: &Volume,
    dirs: &PodDirs,
    settings: &VolumeSettings,
    objects: &PodObjects,
) -> Result<MadeVolume, VolumeError> {
    let name = || volume.name.clone();
    let security = &pod.spec.security;
    let bound = settings.memory_bound;
    match &volume.source {
        VolumeSource::EmptyDir { medium, size_limit } => {
            let failed = |source| VolumeError::EmptyDir {
                volume: name(),
                source,
            };
            let quota = quota::request(pod, &volume.source, settings.quotas);
            let quota = quota.map_err(|error| failed(error.into()))?;
            let request = EmptyDirRequest {
                name: &volume.name,
                medium: *medium,
                size: bounded(*size_limit, bound),
                fs_group: security.fs_group,
                on_root_mismatch: security.fs_group_on_root_mismatch,
                quota,
            };
            let made = empty_dir::prepare(dirs, &request).map_err(failed)?;
            Ok(Some((made.path, made.warning)))
        }
        VolumeSource::HostPath { path, check } => {
            let path = Path::new(&**path);
            let checked = host_path::check(path, *check);
            checked.map_err(|source| VolumeError::HostPath {
                volume: name(),
                source,
            })?;
            Ok(Some((path.to_owned(), None)))
        }
        VolumeSource::Image { .. } => Ok(None),
        VolumeSource::Files(files) => {
            let made = projection::prepare(pod, &volume.name, files, dirs, objects, settings);
            let made = made.map_err(|source| VolumeError::Projection {
                volume: name(),
                source,
            })?;
            Ok(Some((made.path, made.warning)))
        }
    }
}

/// `sizeLimit` only applies if it is lower than the memory bound of the pod.
fn bounded(size_limit: Option<Bytes>, bound: Bytes) -> Bytes {
    size_limit
        .filter(|&limit| limit > 0)
        .map_or(bound, |limit| limit.min(bound))
}

#[cfg(test)]
mod tests {
    use std::{cell::RefCell, os::unix::fs::MetadataExt};

    use rubelet_api::{
        container::PullPolicy,
        downward::Allocatable,
        volume::{DownwardContent, DownwardFile, FileVolume, HostPathCheck, Medium},
        volume_plugin::VolumePlugin,
    };
    use rubelet_base::ErrorChain;

    use super::*;
    use crate::{
        VolumeEvent, VolumeQuotas, cleanup, remove_volumes,
        test_support::{Scratch, ignored, pod},
    };

    const SETTINGS: VolumeSettings = VolumeSettings {
        memory_bound: 1 << 20,
        allocatable: Allocatable {
            cpu: 2000,
            memory: 1 << 30,
        },
        quotas: VolumeQuotas::GateOff,
    };

    fn volume(name: &str, source: VolumeSource) -> Volume {
        Volume {
            name: name.into(),
            source,
        }
    }

    #[test]
    fn size_limits_can_only_lower_the_bound() {
        for (size_limit, expected) in [
            (None, 100),
            (Some(0), 100),
            (Some(1), 1),
            (Some(100), 100),
            (Some(101), 100),
        ] {
            assert_eq!(bounded(size_limit, 100), expected, "{size_limit:?}");
        }
    }

    #[test]
    fn each_volume_gets_its_path_and_a_second_run_changes_nothing() {
        let scratch = Scratch::new();
        let dirs = scratch.dirs();
        let mut pod = pod();
        let host = scratch.path().join("made");
        let host_path = VolumeSource::HostPath {
            path: host.to_str().unwrap().into(),
            check: HostPathCheck::DirectoryOrCreate,
        };
        let disk = VolumeSource::EmptyDir {
            medium: Medium::Disk,
            size_limit: None,
        };
        pod.spec.volumes = vec![volume("cache", disk), volume("host", host_path)];
        let first = prepare(&pod, &dirs, &SETTINGS, &PodObjects::default(), &ignored).unwrap();
        assert_eq!(
            first.path("cache"),
            Some(&*dirs.empty_dir("cache").unwrap())
        );
        assert_eq!(first.path("host"), Some(&*host));
        assert_eq!(first.path("other"), None);
        assert!(host.is_dir());
        for dir in [dirs.pod().to_owned(), dirs.volumes(), dirs.plugins()] {
            assert_eq!(
                dir.metadata().unwrap().mode() & 0o7777,
                0o750,
                "{}",
                dir.display()
            );
        }
        std::fs::write(first.path("cache").unwrap().join("f"), "kept").unwrap();
        assert_eq!(
            prepare(&pod, &dirs, &SETTINGS, &PodObjects::default(), &ignored).unwrap(),
            first
        );
        assert!(first.path("cache").unwrap().join("f").exists());
    }

    #[test]
    fn a_refresh_writes_what_changes_and_does_not_look_at_the_rest() {
        let scratch = Scratch::new();
        let dirs = scratch.dirs();
        let mut pod = pod();
        pod.labels.insert("tier".into(), "front".into());
        let labels = VolumeSource::Files(FileVolume::DownwardApi {
            items: vec![DownwardFile {
                path: "labels".into(),
                content: DownwardContent::Labels,
                mode: None,
            }],
            default_mode: 0o644,
        });
        let host = scratch.path().join("gone");
        let host_path = VolumeSource::HostPath {
            path: host.to_str().unwrap().into(),
            check: HostPathCheck::Directory,
        };
        std::fs::create_dir(&host).unwrap();
        pod.spec.volumes = vec![volume("host", host_path), volume("labels", labels)];
        let made = prepare(&pod, &dirs, &SETTINGS, &PodObjects::default(), &ignored).unwrap();
        std::fs::remove_dir(&host).unwrap();
        pod.labels.insert("tier".into(), "back".into());
        refresh(&pod, &dirs, &SETTINGS, &PodObjects::default(), &ignored).unwrap();
        let file = made.path("labels").unwrap().join("labels");
        assert_eq!(std::fs::read_to_string(file).unwrap(), "tier=\"back\"");
        assert!(!host.exists());
    }

    #[test]
    fn the_observer_is_told_of_each_volume_that_is_made_and_removed() {
        let scratch = Scratch::new();
        let dirs = scratch.dirs();
        let mut pod = pod();
        let disk = VolumeSource::EmptyDir {
            medium: Medium::Disk,
            size_limit: None,
        };
        let missing = VolumeSource::HostPath {
            path: "/rubelet-t-missing".into(),
            check: HostPathCheck::Directory,
        };
        let image = VolumeSource::Image {
            reference: "tools:1".into(),
            pull_policy: PullPolicy::Never,
        };
        pod.spec.volumes = vec![
            volume("cache", disk),
            volume("data", missing),
            volume("tools", image),
        ];
        let seen = RefCell::new(Vec::new());
        let observer = |event: VolumeEvent| {
            if let VolumeEvent::Ended { plugin, is_ok } = event {
                seen.borrow_mut().push((plugin, is_ok));
            }
        };
        prepare(&pod, &dirs, &SETTINGS, &PodObjects::default(), &observer).unwrap_err();
        let disk = VolumePlugin::EmptyDir;
        assert_eq!(seen.take(), [(disk, true), (VolumePlugin::HostPath, false)]);
        remove_volumes(&dirs, &observer).unwrap();
        assert_eq!(seen.take(), [(disk, true)]);
        cleanup(&dirs, &observer).unwrap();
        assert_eq!(seen.take(), []);
    }

    #[test]
    fn errors_name_the_volume_and_the_reason() {
        let scratch = Scratch::new();
        let mut pod = pod();
        let source = VolumeSource::HostPath {
            path: "/rubelet-t-missing".into(),
            check: HostPathCheck::Directory,
        };
        pod.spec.volumes = vec![volume("data", source)];
        let error = prepare(
            &pod,
            &scratch.dirs(),
            &SETTINGS,
            &PodObjects::default(),
            &ignored,
        )
        .unwrap_err();
        let expected = "MountVolume.SetUp failed for volume \"data\" : \
                        hostPath type check failed: /rubelet-t-missing is not a directory";
        assert_eq!(ErrorChain(&error).to_string(), expected);
    }
}
