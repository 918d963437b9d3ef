//! The resources that pods use, from their cgroups, logs and volumes.

use std::{collections::HashMap, io, sync::Arc};

use async_trait::async_trait;
use rubelet_api::pod::Pod;
use rubelet_base::PodUid;
use rubelet_host::tree_usage::{self, TreeUsage};
use rubelet_node_plan::eviction::{ContainerUsage, DiskUsage, PodUsage, StarvedResource};
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

/// Logs by container, and volumes.
fn disk_usage(host: &LocalHostState, pod: &Pod) -> io::Result<PodUsage> {
    let mut usage = PodUsage::default();
    let logs = host
        .log_dir(&pod.name, &pod.uid)
        .map_err(|error| io::Error::other(error.to_string()))?;
    for container in pod.spec.all_containers() {
        let directory = logs.path().join(&*container.name);
        let found = present(tree_usage::of(&directory))?;
        usage.containers.push(ContainerUsage {
            name: container.name.clone(),
            logs: Some(found),
            ..ContainerUsage::default()
        });
    }
    let dirs =
        directories::dirs(host, &pod.uid).map_err(|error| io::Error::other(error.to_string()))?;
    for directory in dirs.volumes_on_disk() {
        let found = present(tree_usage::of(&directory))?;
        usage.volumes.bytes = usage.volumes.bytes.saturating_add(found.bytes);
        usage.volumes.inodes = usage.volumes.inodes.saturating_add(found.inodes);
    }
    Ok(usage)
}

/// A directory that does not exist uses nothing.
fn present(found: io::Result<TreeUsage>) -> io::Result<DiskUsage> {
    match found {
        Ok(TreeUsage { bytes, inodes }) => Ok(DiskUsage { bytes, inodes }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(DiskUsage::default()),
        Err(error) => Err(error),
    }
}
