//! Creates and removes the directories, volumes, logs and cgroup of a pod.

use std::{cell::Cell, collections::BTreeSet, fs, io, sync::Arc};

use rubelet_api::{objects::PodObjects, pod::Pod};
use rubelet_base::{ErrorChain, PodName, PodUid, event_reason};
use rubelet_cgroup_plan::CgroupDriver;
use rubelet_logs::{directories, layout::PodLogDir, links::remove_dangling_links};
use rubelet_node_plan::{SYSCTL_FORBIDDEN, check_sysctls, memory_volume_bound};
use rubelet_node_state::{host_error::HostError, metrics::VolumeOperation};
use rubelet_volumes::{MountedVolumes, PodDirs, VolumeError, VolumeEvent, VolumeSettings};
use tokio::time::Instant;
use tracing::warn;

use super::LocalHostState;

/// Creates the cgroup of a pod that may run here.
pub(super) fn prepare_cgroup(
    inner: &LocalHostState,
    pod: &Pod,
    driver: Option<CgroupDriver>,
) -> Result<(), HostError> {
    check_sysctls(pod, &inner.settings.allowed_unsafe_sysctls)
        .map_err(|error| HostError::new(SYSCTL_FORBIDDEN, &error))?;
    inner.cgroups.ensure(pod, driver)
}

/// Creates directories, volumes and log directory.
pub(super) fn prepare(
    inner: &LocalHostState,
    pod: &Pod,
    objects: &PodObjects,
) -> Result<(), HostError> {
    volumes(inner, pod, objects)?;
    let logs = inner.log_dir(&pod.name, &pod.uid)?;
    directories::create_pod_log_dir(&logs).map_err(|error| HostError::sandbox(&error))
}

/// Creates the pod's missing volumes, and updates them from `objects`.
pub(super) fn volumes(
    inner: &LocalHostState,
    pod: &Pod,
    objects: &PodObjects,
) -> Result<(), HostError> {
    let dirs = dirs(inner, &pod.uid)?;
    let observer = counted(inner, VolumeOperation::Mount);
    let mounted = rubelet_volumes::prepare(pod, &dirs, &settings(inner, pod), objects, &observer)
        .map_err(|error| match error {
        VolumeError::PodDir { .. } => HostError::new(event_reason::FAILED, &error),
        _ => HostError::new(event_reason::FAILED_MOUNT, &error),
    })?;
    inner
        .mounted
        .lock()
        .insert(pod.uid.clone(), Arc::new(mounted));
    Ok(())
}

/// Updates the files of volumes from `objects`.
pub(super) fn refresh(
    inner: &LocalHostState,
    pod: &Pod,
    objects: &PodObjects,
) -> Result<(), HostError> {
    let dirs = dirs(inner, &pod.uid)?;
    let observer = counted(inner, VolumeOperation::Mount);
    rubelet_volumes::refresh(pod, &dirs, &settings(inner, pod), objects, &observer)
        .map_err(|error| HostError::new(event_reason::FAILED_MOUNT, &error))
}

/// Counts operations on volumes.
fn counted(inner: &LocalHostState, operation: VolumeOperation) -> impl Fn(VolumeEvent) {
    let metrics = &inner.settings.metrics.storage;
    let began = Cell::new(Instant::now());
    move |event| match event {
        VolumeEvent::Began => began.set(Instant::now()),
        VolumeEvent::Ended { plugin, is_ok } => {
            metrics.operation_ended(plugin, operation, began.get().elapsed(), is_ok);
        }
    }
}

fn settings(inner: &LocalHostState, pod: &Pod) -> VolumeSettings {
    let allocatable = inner.settings.allocatable;
    VolumeSettings {
        memory_bound: memory_volume_bound(pod, allocatable.memory),
        allocatable,
        quotas: inner.settings.volume_quotas,
    }
}

/// The paths of the pod's volumes.
pub(super) fn mounted(inner: &LocalHostState, pod: &Pod) -> Result<Arc<MountedVolumes>, HostError> {
    let mounted = inner.mounted.lock().get(&pod.uid).map(Arc::clone);
    mounted.ok_or_else(|| HostError {
        reason: event_reason::FAILED_MOUNT,
        message: "the pod's volumes are not set up".to_owned(),
    })
}

pub(super) fn dirs(inner: &LocalHostState, uid: &PodUid) -> Result<PodDirs, HostError> {
    PodDirs::new(&inner.settings.root, uid)
        .map_err(|error| HostError::new(event_reason::FAILED_MOUNT, &error))
}

/// Unmounts and removes volumes.
pub(super) fn remove_volumes(inner: &LocalHostState, uid: &PodUid) -> Result<(), HostError> {
    inner.mounted.lock().remove(uid);
    let observer = counted(inner, VolumeOperation::Unmount);
    rubelet_volumes::remove_volumes(&dirs(inner, uid)?, &observer)
        .map_err(|error| HostError::new("FailedCleanUp", &error))
}

/// Removes volumes, directories and logs. If one part fails, independent ones are removed all the
/// same; returns what is wrong with each.
pub(super) fn clean_up(inner: &LocalHostState, name: &PodName, uid: &PodUid) -> Vec<String> {
    let mut failed = Vec::new();
    inner.mounted.lock().remove(uid);
    match dirs(inner, uid) {
        Ok(dirs) => {
            let observer = counted(inner, VolumeOperation::Unmount);
            if let Err(error) = rubelet_volumes::cleanup(&dirs, &observer) {
                failed.push(ErrorChain(&error).to_string());
            }
        }
        Err(error) => failed.push(error.message),
    }
    for dir in log_dirs(inner, name, uid) {
        if let Err(error) = directories::remove_pod_log_dir(&dir) {
            failed.push(ErrorChain(&error).to_string());
        }
        // Links of containers that the runtime has lost.
        let links = &inner.settings.container_logs;
        if let Err(error) = remove_dangling_links(links, dir.path(), &BTreeSet::new()) {
            failed.push(ErrorChain(&error).to_string());
        }
    }
    failed
}

/// Removes the cgroup; returns what is wrong.
pub(super) fn clean_up_cgroup(inner: &LocalHostState, uid: &PodUid) -> Option<String> {
    match inner.cgroups.remove(uid) {
        Ok(true) => None,
        Ok(false) => Some("the pod's cgroup is still in use".to_owned()),
        Err(error) => Some(error.message),
    }
}

/// The log directory of a pod. For a pod whose UID alone is known, it is found by the UID.
fn log_dirs(inner: &LocalHostState, name: &PodName, uid: &PodUid) -> Vec<PodLogDir> {
    if let Ok(dir) = inner.log_dir(name, uid) {
        return vec![dir];
    }
    let found = directories::list_pod_log_dirs(&inner.settings.pod_logs).unwrap_or_default();
    found
        .into_iter()
        .filter(|(_, of, _)| of == uid)
        .map(|(_, _, dir)| dir)
        .collect()
}

/// UIDs of pods with a directory or a record below the root.
pub(super) fn pods_on_disk(inner: &LocalHostState) -> Vec<PodUid> {
    let root = &inner.settings.root;
    let mut found = rubelet_volumes::orphans(root).unwrap_or_else(|error| {
        warn!(root = %root.display(), %error, "Failed to list the directories of pods");
        Vec::new()
    });
    match fs::read_dir(root.join("rubelet/pods")) {
        Ok(entries) => found.extend(entries.flatten().filter_map(|entry| {
            let name = entry.file_name();
            name.to_str()?.strip_suffix(".json").map(PodUid::from)
        })),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => warn!(%error, "Failed to list the records of pods"),
    }
    found.sort();
    found.dedup();
    found
}
