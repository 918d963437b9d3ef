//! Removes a pod's directory after its containers: unmounts Rubelet's mounts, then removes the
//! files of Rubelet and the containers. A `hostPath` is not below the directory, and foreign mounts
//! are never entered, so nothing else can be removed.

use std::{
    ffi::{OsStr, OsString},
    fmt,
    fs::{self, File},
    io,
    os::{fd::AsFd, unix::fs::OpenOptionsExt},
    path::{Path, PathBuf},
};

use rubelet_api::volume_plugin::VolumePlugin;
use rubelet_base::{ErrorChain, PodUid};
use rubelet_host::{
    mount::{self, UnmountOutcome},
    mountinfo::{self, MountinfoError},
};
use rustix::fs::OFlags;

pub use crate::remove::RemoveProblem;
use crate::{
    dirs::{PLUGINS, PodDirs, SUB_PATHS, VOLUMES, pods_dir},
    empty_dir::quota,
    observe::{VolumeObserver, observed},
    remove::{Limits, tree},
};

/// A reason why a pod's directory can't be removed.
#[derive(Debug, thiserror::Error)]
pub enum CleanupProblem {
    /// A directory can't be inspected.
    #[error("cannot inspect {}", path.display())]
    Look {
        /// The directory.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
    /// The list of mounts can't be read.
    #[error(transparent)]
    Mountinfo(#[from] MountinfoError),
    /// A foreign file system is mounted.
    #[error("a file system of type {fs_type} is mounted on {}, not by Rubelet", path.display())]
    ForeignMount {
        /// Where.
        path: PathBuf,
        /// Its type.
        fs_type: String,
    },
    /// A process has files open in a volume.
    #[error("{} is still in use", .0.display())]
    InUse(PathBuf),
    /// The kernel refuses to unmount.
    #[error("cannot unmount {}", path.display())]
    Unmount {
        /// Where.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
    /// A file or directory can't be removed.
    #[error(transparent)]
    Remove(#[from] RemoveProblem),
}

/// A pod's directory that could not be removed, and why. The caller retries.
#[derive(Debug)]
pub struct CleanupError {
    /// The pod.
    pub uid: String,
    /// At least one problem.
    pub problems: Vec<CleanupProblem>,
}

impl fmt::Display for CleanupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot remove all files of the pod {}", self.uid)?;
        for (index, problem) in self.problems.iter().enumerate() {
            f.write_str(if index == 0 { ": " } else { "; " })?;
            write!(f, "{}", ErrorChain(problem))?;
        }
        Ok(())
    }
}

// The causes are in the message: an error can have only one source.
impl std::error::Error for CleanupError {}

/// Removes the directory of a pod with all volumes in it. No container of the pod may be running. A
/// missing directory is a success. The observer is told of each volume that is removed.
///
/// # Errors
/// All problems. Nothing is deleted while a file system is mounted.
pub fn cleanup(dirs: &PodDirs, observer: VolumeObserver<'_>) -> Result<(), CleanupError> {
    let Some(pod) = unmounted(dirs)? else {
        return Ok(());
    };
    let look = |path: &Path, source| look(dirs, path, source);
    let mut problems =
        remove_contents(&pod.path, &pod.fd, observer).map_err(|error| look(&pod.path, error))?;
    if problems.is_empty() {
        let parent = open_dir(&pod.pods).map_err(|error| look(&pod.pods, error))?;
        let name = OsStr::new(dirs.uid());
        problems = tree(parent.as_fd(), &pod.pods, name, Limits::DIRECTORIES);
    }
    outcome(dirs, problems)
}

/// Unmounts and removes the volumes of a terminated pod. Its other files stay until it is deleted.
/// No container of the pod may be running. A missing directory is a success. The observer is told
/// of each volume that is removed.
///
/// # Errors
/// All problems. Nothing is deleted while a file system is mounted.
pub fn remove_volumes(dirs: &PodDirs, observer: VolumeObserver<'_>) -> Result<(), CleanupError> {
    let Some(pod) = unmounted(dirs)? else {
        return Ok(());
    };
    let removed = remove_own_volumes(&pod.path, &pod.fd, observer);
    let mut problems = removed.map_err(|error| look(dirs, &pod.path, error))?;
    let name = OsStr::new(SUB_PATHS);
    problems.extend(tree(pod.fd.as_fd(), &pod.path, name, SUB_PATH_LIMITS));
    outcome(dirs, problems)
}

/// A pod's directory without mounts.
struct UnmountedPod {
    pods: PathBuf,
    path: PathBuf,
    fd: File,
}

/// Unmounts all of Rubelet's mounts for a pod; `None`: it has no directory.
fn unmounted(dirs: &PodDirs) -> Result<Option<UnmountedPod>, CleanupError> {
    let pods = match dirs.pods().canonicalize() {
        Ok(pods) => pods,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(look(dirs, dirs.pods(), error)),
    };
    let path = pods.join(dirs.uid());
    let fd = match open_dir(&path) {
        Ok(fd) => fd,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(look(dirs, &path, error)),
    };
    let problems = unmount_all(&path);
    if !problems.is_empty() {
        return Err(failed(dirs, problems));
    }
    Ok(Some(UnmountedPod { pods, path, fd }))
}

fn failed(dirs: &PodDirs, problems: Vec<CleanupProblem>) -> CleanupError {
    CleanupError {
        uid: dirs.uid().to_owned(),
        problems,
    }
}

fn look(dirs: &PodDirs, path: &Path, source: io::Error) -> CleanupError {
    let path = path.to_owned();
    failed(dirs, vec![CleanupProblem::Look { path, source }])
}

fn outcome(dirs: &PodDirs, problems: Vec<RemoveProblem>) -> Result<(), CleanupError> {
    if problems.is_empty() {
        return Ok(());
    }
    let problems = problems.into_iter().map(CleanupProblem::Remove);
    Err(failed(dirs, problems.collect()))
}

/// Unmounts at the paths where Rubelet mounts. Any other mount may be another plugin's volume with
/// user data.
fn unmount_all(pod: &Path) -> Vec<CleanupProblem> {
    let mounts = match mountinfo::read() {
        Ok(mounts) => mounts,
        Err(error) => return vec![error.into()],
    };
    let volumes = OWN_PLUGINS.map(|plugin| pod.join(VOLUMES).join(plugin.directory()));
    let ours: Vec<PathBuf> = volumes.into_iter().chain([pod.join(SUB_PATHS)]).collect();
    let mut problems = Vec::new();
    for entry in mountinfo::at_or_below(&mounts, pod) {
        let path = entry.mount_point.clone();
        let is_ours = ours.iter().any(|dir| path.starts_with(dir) && path != *dir);
        if !is_ours {
            let fs_type = entry.fs_type.clone();
            problems.push(CleanupProblem::ForeignMount { path, fs_type });
            continue;
        }
        match mount::unmount(&path, false) {
            Ok(UnmountOutcome::Gone | UnmountOutcome::WasNot) => {}
            Ok(UnmountOutcome::StillBusy) => problems.push(CleanupProblem::InUse(path)),
            Err(source) => problems.push(CleanupProblem::Unmount { path, source }),
        }
    }
    problems
}

/// volume-subpaths/VOLUME/CONTAINER contains mount points, all empty.
const SUB_PATH_LIMITS: Limits = Limits {
    files: true,
    depth: 3,
};

/// Removes the volumes of Rubelet's own plugins, with their contents.
fn remove_own_volumes(
    pod: &Path,
    fd: &File,
    observer: VolumeObserver<'_>,
) -> io::Result<Vec<RemoveProblem>> {
    // The markers first: a partially removed volume must not count as complete.
    let mut problems = tree(fd.as_fd(), pod, OsStr::new(PLUGINS), Limits::ALL);
    for plugin in OWN_PLUGINS {
        problems.extend(remove_volumes_of(pod, fd, plugin, observer)?);
    }
    Ok(problems)
}

/// Empties the pod's directory, each part by its own rules.
fn remove_contents(
    pod: &Path,
    fd: &File,
    observer: VolumeObserver<'_>,
) -> io::Result<Vec<RemoveProblem>> {
    let remove = |name: &OsStr, limits| tree(fd.as_fd(), pod, name, limits);
    let mut problems = remove_own_volumes(pod, fd, observer)?;
    for name in names(pod)? {
        let limits = match name.to_str() {
            // The volumes of other plugins, which must remove the data themselves.
            Some(VOLUMES | "volumeDevices") => Limits::DIRECTORIES,
            Some(SUB_PATHS) => SUB_PATH_LIMITS,
            _ => Limits::ALL,
        };
        problems.extend(remove(&name, limits));
    }
    Ok(problems)
}

/// The plugins whose volumes Rubelet removes.
const OWN_PLUGINS: [VolumePlugin; 5] = [
    VolumePlugin::EmptyDir,
    VolumePlugin::ConfigMap,
    VolumePlugin::DownwardApi,
    VolumePlugin::Projected,
    VolumePlugin::Secret,
];

fn remove_volumes_of(
    pod: &Path,
    fd: &File,
    plugin: VolumePlugin,
    observer: VolumeObserver<'_>,
) -> io::Result<Vec<RemoveProblem>> {
    let relative = Path::new(VOLUMES).join(plugin.directory());
    let path = pod.join(&relative);
    let within = rustix::fs::ResolveFlags::NO_XDEV | rustix::fs::ResolveFlags::NO_SYMLINKS;
    let flags = DIR_FLAGS | OFlags::CLOEXEC;
    match rustix::fs::openat2(fd, relative, flags, rustix::fs::Mode::empty(), within) {
        Ok(of_plugin) => {
            let volumes = of_plugin.as_fd();
            let remove = |name: &OsString| {
                let project = quota::of_volume(volumes, name);
                let problems = tree(volumes, &path, name, Limits::ALL);
                if let Some(project) = project {
                    quota::release(volumes, project);
                }
                problems
            };
            let remove = |name| observed(observer, plugin, || remove(name), Vec::is_empty);
            Ok(names(&path)?.iter().flat_map(remove).collect())
        }
        Err(rustix::io::Errno::NOENT) => Ok(Vec::new()),
        Err(error) => Err(error.into()),
    }
}

/// Read completely first: reading a directory while it shrinks may skip names.
fn names(dir: &Path) -> io::Result<Vec<OsString>> {
    fs::read_dir(dir)?
        .map(|entry| Ok(entry?.file_name()))
        .collect()
}

const DIR_FLAGS: OFlags = OFlags::DIRECTORY.union(OFlags::NOFOLLOW);

fn open_dir(path: &Path) -> io::Result<File> {
    let flags = DIR_FLAGS.bits().cast_signed();
    fs::OpenOptions::new()
        .read(true)
        .custom_flags(flags)
        .open(path)
}

/// The pods that have a directory, including unknown ones.
///
/// # Errors
/// The directory of all pods exists and can't be read.
pub fn orphans(root: &Path) -> io::Result<Vec<PodUid>> {
    let entries = match fs::read_dir(pods_dir(root)) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut uids = Vec::new();
    for entry in entries {
        let entry = entry?;
        if entry.file_type()?.is_dir()
            && let Ok(name) = entry.file_name().into_string()
        {
            uids.push(PodUid::from(name));
        }
    }
    uids.sort();
    Ok(uids)
}

#[cfg(test)]
mod tests;
