//! Project quotas of `emptyDir` volumes: the feature gate `LocalStorageCapacityIsolationFSQuotaMonitoring`.
//! The kernel counts what a volume uses, and stops it at its limit or soon above.
//!
//! No list of projects is kept: a volume's directory has its number, and a number is free while no file
//! has it and the machine's own lists do not name it.

use std::{
    collections::HashSet,
    ffi::OsStr,
    fs::File,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    io::{self, Read as _},
    os::fd::{AsFd as _, BorrowedFd, OwnedFd},
    path::Path,
};

use parking_lot::Mutex;
use rubelet_api::{
    pod::{Pod, PodSource},
    resources::Bytes,
    volume::{Medium, VolumeSource},
};
use rubelet_host::project_quota::{self, ProjectId, ProjectSupport};
use rustix::fs::{CWD, Mode, openat};

use crate::{VolumeQuotas, directory};

const GATE: &str = "LocalStorageCapacityIsolationFSQuotaMonitoring";

/// The first number of projects of volumes, as the kubelet's.
const FIRST: u32 = 1_048_577;
/// How many numbers there are from which a volume's is chosen.
const RANGE: u64 = 1 << 30;
/// Most numbers that are tried for one volume.
const MOST_TRIED: usize = 10_000;
/// The machine's lists: `PROJECT:DIRECTORY` and `NAME:PROJECT` in each line, see `projects(5)` and `projid(5)`.
const LISTS: [&str; 2] = ["/etc/projects", "/etc/projid"];
/// Longest list that is read.
const MAX_LIST: u64 = 4 << 20;
/// Least space between a limit and the bound that the kernel holds.
const LEAST_MARGIN: Bytes = 16 << 20;

/// One volume after the other takes a number.
static CHOOSING: Mutex<()> = Mutex::new(());

/// A quota of a volume.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuotaRequest {
    /// The most that the volume may have.
    bound: Option<Bytes>,
    /// Whether nothing else holds the volume to its limit.
    must_hold: bool,
}

/// A volume can't be held to its limit.
#[derive(Debug, thiserror::Error)]
pub enum QuotaError {
    /// The feature gate is off.
    #[error("sizeLimit on disk needs the feature gate {GATE}")]
    GateOff,
    /// Ephemeral storage is not accounted.
    #[error("sizeLimit on disk needs `localStorageCapacityIsolation: true` in the configuration")]
    NotAccounted,
    /// The file system can't bound the space of a directory.
    #[error(
        "sizeLimit on disk needs a file system with project quotas, mounted with the option prjquota"
    )]
    NoBounds,
    /// The quota can't be set up.
    #[error("cannot set its quota up")]
    Kernel(#[source] io::Error),
}

/// The quota that a volume of a pod gets. Volumes of pods that may be evicted have a bound a little above
/// their limit: what exceeds the limit is evicted, and until then does not fill the disk.
///
/// # Errors
/// [`QuotaError::GateOff`] or [`QuotaError::NotAccounted`], for a volume of a manifest's pod with a limit.
pub(crate) fn request(
    pod: &Pod,
    volume: &VolumeSource,
    quotas: VolumeQuotas,
) -> Result<Option<QuotaRequest>, QuotaError> {
    let VolumeSource::EmptyDir { size_limit, .. } = volume else {
        return Ok(None);
    };
    if !is_eligible(pod, volume) {
        return Ok(None);
    }
    let limit = size_limit.filter(|&limit| limit > 0);
    let is_evicted = pod.source == PodSource::Api;
    let must_hold = limit.is_some() && !is_evicted;
    let off = match quotas {
        VolumeQuotas::On => None,
        VolumeQuotas::GateOff => Some(QuotaError::GateOff),
        VolumeQuotas::NotAccounted => Some(QuotaError::NotAccounted),
    };
    if let Some(off) = off {
        return if must_hold { Err(off) } else { Ok(None) };
    }
    let bound = limit.map(|limit| match is_evicted {
        true => limit.saturating_add(LEAST_MARGIN.max(limit / 16)),
        false => limit,
    });
    Ok(Some(QuotaRequest { bound, must_hold }))
}

/// Whether the kernel counts what a volume of this pod uses, where the gate is on and the file system can.
/// Processes outside of user namespaces could change the project of their files, and so what counts for
/// whom.
pub(crate) fn is_eligible(pod: &Pod, volume: &VolumeSource) -> bool {
    let on_disk = matches!(
        volume,
        VolumeSource::EmptyDir {
            medium: Medium::Disk,
            ..
        }
    );
    on_disk && !pod.spec.host_users
}

/// Puts a new volume into a project of its own, where the file system counts them. Returns a warning.
pub(super) fn set_up(path: &Path, request: QuotaRequest) -> Result<Option<String>, QuotaError> {
    match try_set_up(path, request.bound) {
        Ok(ProjectSupport::Bounded) => Ok(None),
        Ok(_) if request.must_hold => Err(QuotaError::NoBounds),
        Ok(_) => Ok(None),
        Err(error) if request.must_hold => Err(QuotaError::Kernel(error)),
        // Adding up its files works everywhere.
        Err(error) => Ok(Some(format!("{} has no quota: {error}", path.display()))),
    }
}

fn try_set_up(path: &Path, bound: Option<Bytes>) -> io::Result<ProjectSupport> {
    let dir = open(CWD, path.as_os_str())?;
    let support = project_quota::support(&dir)?;
    if support == ProjectSupport::None {
        return Ok(support);
    }
    let project = match project_quota::of_directory(&dir)? {
        // An earlier attempt had come so far.
        Some(project) if project.0 >= FIRST => project,
        _ => {
            let _one = CHOOSING.lock();
            let project = choose(&dir, path)?;
            project_quota::set_directory(&dir, project)?;
            project
        }
    };
    project_quota::set_bound(&dir, project, bound)?;
    Ok(support)
}

fn choose(dir: &OwnedFd, path: &Path) -> io::Result<ProjectId> {
    let named = named(&LISTS.map(Path::new))?;
    for project in candidates(path).take(MOST_TRIED) {
        if !named.contains(&project.0) && is_free(dir.as_fd(), project)? {
            return Ok(project);
        }
    }
    Err(io::Error::other("no free project number was found"))
}

/// Whether no file has the project.
fn is_free(dir: BorrowedFd<'_>, project: ProjectId) -> io::Result<bool> {
    let counted = project_quota::usage(dir, project)?;
    Ok(counted.is_some_and(|counted| counted.inodes == 0))
}

/// The numbers that a volume may have, its own first.
fn candidates(path: &Path) -> impl Iterator<Item = ProjectId> {
    let mut hasher = DefaultHasher::new();
    path.hash(&mut hasher);
    let own = hasher.finish();
    (0..).map(move |index: u64| {
        let chosen = own.wrapping_add(index) % RANGE;
        ProjectId(FIRST + u32::try_from(chosen).unwrap_or(0))
    })
}

/// All numbers in the machine's lists.
fn named(lists: &[&Path]) -> io::Result<HashSet<u32>> {
    let mut found = HashSet::new();
    for path in lists {
        let file = match File::open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            file => file?,
        };
        let mut text = String::new();
        if file.take(MAX_LIST + 1).read_to_string(&mut text)? as u64 > MAX_LIST {
            return Err(io::Error::other(format!("{} is too long", path.display())));
        }
        let words = text.lines().flat_map(|line| line.split(':'));
        found.extend(words.filter_map(|word| word.trim().parse::<u32>().ok()));
    }
    Ok(found)
}

/// The project of a volume that is going to be removed.
pub(crate) fn of_volume(plugin: BorrowedFd<'_>, name: &OsStr) -> Option<ProjectId> {
    let project = project_quota::of_directory(open(plugin, name).ok()?).ok()??;
    (project.0 >= FIRST).then_some(project)
}

/// Removes the bound of a removed volume. A project that is still in use is another volume's: the number was
/// not ours. XFS counts removed files for a moment longer, and the bound may stay.
pub(crate) fn release(plugin: BorrowedFd<'_>, project: ProjectId) {
    if is_free(plugin, project).unwrap_or(false) {
        // A bound that stays is replaced when the number is used again.
        let _ = project_quota::set_bound(plugin, project, None);
    }
}

fn open(at: BorrowedFd<'_>, name: &OsStr) -> io::Result<OwnedFd> {
    Ok(openat(at, name, directory::FLAGS, Mode::empty())?)
}

#[cfg(test)]
mod tests;
