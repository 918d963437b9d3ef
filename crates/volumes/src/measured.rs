//! The volumes of a pod whose space is measured. Touches no file.
//!
//! Source of the rule: the `MetricsProvider`s of the volume plugins, and `IsLocalEphemeralVolume`, of
//! Kubernetes 1.36.

use std::path::PathBuf;

use rubelet_api::{
    pod::Pod,
    volume::{FileVolume, Medium, VolumeSource},
};

use crate::{
    dirs::{PodDirs, UnsafeName},
    empty_dir::quota,
};

/// A volume whose space is measured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MeasuredVolume {
    /// `name`.
    pub name: Box<str>,
    /// Its directory. It may be missing.
    pub path: PathBuf,
    /// Whether it takes local ephemeral storage: it is on the root directory's disk, and removed with
    /// the pod. Other volumes are file systems in memory.
    pub is_ephemeral: bool,
    /// Whether the kernel may count it, and only what its pod writes.
    pub may_have_quota: bool,
}

/// The volumes of a pod whose space is measured: not `hostPath` volumes and images, whose space is the
/// host's.
pub fn measured(pod: &Pod, dirs: &PodDirs) -> Vec<MeasuredVolume> {
    let volumes = pod.spec.volumes.iter();
    volumes
        .filter_map(|volume| {
            let (path, is_ephemeral) = place(&volume.name, &volume.source, dirs).ok()??;
            Some(MeasuredVolume {
                name: volume.name.clone(),
                path,
                is_ephemeral,
                may_have_quota: quota::is_eligible(pod, &volume.source),
            })
        })
        .collect()
}

fn place(
    name: &str,
    source: &VolumeSource,
    dirs: &PodDirs,
) -> Result<Option<(PathBuf, bool)>, UnsafeName> {
    Ok(match source {
        VolumeSource::EmptyDir { medium, .. } => {
            Some((dirs.empty_dir(name)?, *medium == Medium::Disk))
        }
        VolumeSource::Files(files) => {
            let path = dirs.volume(files.plugin(), name)?;
            Some((path, matches!(files, FileVolume::ConfigMap(_))))
        }
        VolumeSource::HostPath { .. } | VolumeSource::Image { .. } => None,
    })
}

#[cfg(test)]
mod tests {
    use rubelet_api::volume::{HostPathCheck, ObjectVolume, Volume};

    use super::*;
    use crate::test_support::{Scratch, pod};

    #[test]
    fn volumes_that_belong_to_the_pod_are_measured() {
        let scratch = Scratch::new();
        let dirs = scratch.dirs();
        let object = || ObjectVolume {
            name: "o".into(),
            items: Vec::new(),
            default_mode: 0o644,
            optional: false,
        };
        let empty_dir = |medium| VolumeSource::EmptyDir {
            medium,
            size_limit: None,
        };
        let downward = VolumeSource::Files(FileVolume::DownwardApi {
            items: Vec::new(),
            default_mode: 0o644,
        });
        let rows = [
            (
                empty_dir(Medium::Disk),
                Some(("kubernetes.io~empty-dir/v", true)),
            ),
            (
                empty_dir(Medium::Memory),
                Some(("kubernetes.io~empty-dir/v", false)),
            ),
            (
                VolumeSource::Files(FileVolume::ConfigMap(object())),
                Some(("kubernetes.io~configmap/v", true)),
            ),
            (
                VolumeSource::Files(FileVolume::Secret(object())),
                Some(("kubernetes.io~secret/v", false)),
            ),
            (downward, Some(("kubernetes.io~downward-api/v", false))),
            (
                VolumeSource::HostPath {
                    path: "/".into(),
                    check: HostPathCheck::Unchecked,
                },
                None,
            ),
        ];
        for (source, expected) in rows {
            let mut pod = pod();
            pod.spec.volumes = vec![Volume {
                name: "v".into(),
                source,
            }];
            let found = measured(&pod, &dirs);
            let expected = expected.map(|(path, is_ephemeral)| MeasuredVolume {
                name: "v".into(),
                path: dirs.volumes().join(path),
                is_ephemeral,
                may_have_quota: false,
            });
            assert_eq!(found, Vec::from_iter(expected));
        }
    }
}
