//! The resources that pods use, from their cgroups, logs and volumes.

use std::{collections::HashMap, io, sync::Arc};

use async_trait::async_trait;
use rubelet_api::pod::Pod;
use rubelet_base::PodUid;
use rubelet_host::{
    project_quota,
    tree_usage::{self, TreeUsage},
};
use rubelet_node_plan::eviction::{
    ContainerUsage, DiskUsage, PodUsage, StarvedResource, VolumeUsage,
};
use rubelet_node_state::host_error::HostError;
use tracing::debug;

use super::{LocalHost, LocalHostState, directories};
use crate::eviction::PodUsageSource;

#[async_trait]
impl PodUsageSource for LocalHost {
    async fn usage(
        &self,
        pods: Vec<Arc<Pod>>,
        resource: StarvedResource,
    ) -> HashMap<PodUid, PodUsage> {
        self.blocking(move |inner| {
            let measured = pods.iter().filter_map(|pod| {
                let usage = match resource {
                    StarvedResource::Memory | StarvedResource::Pids => inner.cgroups.usage(pod)?,
                    StarvedResource::EphemeralStorage | StarvedResource::Inodes => {
                        let found = disk_usage(inner, pod);
                        if let Err(error) = &found {
                            debug!(pod = %pod.name, %error, "Cannot measure the disk usage of a pod");
                        }
                        found.ok()?
                    }
                };
                Some((pod.uid.clone(), usage))
            });
            measured.collect()
        })
        .await
    }
}

/// Logs by container, volumes, and other files.
fn disk_usage(host: &LocalHostState, pod: &Pod) -> io::Result<PodUsage> {
    let other = |error: HostError| io::Error::other(error.to_string());
    let mut usage = PodUsage::default();
    let mut is_partial = false;
    let mut take = |found: io::Result<TreeUsage>| -> io::Result<DiskUsage> {
        let found = present(found)?;
        is_partial |= found.is_partial;
        let TreeUsage { bytes, inodes, .. } = found;
        Ok(DiskUsage { bytes, inodes })
    };
    let logs = host.log_dir(&pod.name, &pod.uid).map_err(other)?;
    let ephemeral = pod.spec.ephemeral_containers.iter();
    let containers = pod
        .spec
        .all_containers()
        .chain(ephemeral.map(|one| &one.container));
    for container in containers {
        let directory = logs.path().join(&*container.name);
        usage.containers.push(ContainerUsage {
            name: container.name.clone(),
            logs: Some(take(tree_usage::of(&directory))?),
            ..ContainerUsage::default()
        });
    }
    let dirs = directories::dirs(host, &pod.uid).map_err(other)?;
    let volumes = rubelet_volumes::measured(pod, &dirs);
    for volume in volumes.into_iter().filter(|one| one.is_ephemeral) {
        let found = project_quota::usage_of_tree(&volume.path, volume.may_have_quota);
        usage.volumes.push(VolumeUsage {
            name: volume.name,
            usage: take(found)?,
        });
    }
    usage.files = take(tree_usage::of_file(&dirs.etc_hosts()))?;
    usage.is_partial = is_partial;
    Ok(usage)
}

/// What does not exist uses nothing.
fn present(found: io::Result<TreeUsage>) -> io::Result<TreeUsage> {
    match found {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(TreeUsage::default()),
        found => found,
    }
}
