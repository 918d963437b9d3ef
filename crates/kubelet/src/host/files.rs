//! Files and settings of the host for sandboxes and containers.

use std::{collections::BTreeMap, net::IpAddr, path::Path};

use rubelet_api::{
    container::{Container, EnvValue, FileKeyRef, SubPath},
    pod::Pod,
    volume::VolumeSource,
};
use rubelet_base::event_reason;
use rubelet_cgroup_plan::CgroupDriver;
use rubelet_cri::v1;
use rubelet_logs::directories::create_container_log_dir;
use rubelet_node_state::host_error::{HostError, HostWarning, failed_sandbox};
use rubelet_pod_plan::cri_config::{
    ContainerFiles, SandboxInputs,
    env::{EnvFiles, lookup},
    expand::expand,
};
use rubelet_volumes::{
    DnsInputs, DnsWarning, PodDns, env_file, etc_hosts, pod_dns, pod_hostname,
    sub_path::{self, SubPathRequest},
    termination_log,
};

use super::{LocalHostState, directories, read_optional, users};

/// Host name, resolver settings, cgroup and log directory of a sandbox.
pub(super) fn sandbox_inputs(
    inner: &LocalHostState,
    pod: &Pod,
    attempt: u32,
    driver: Option<CgroupDriver>,
) -> Result<(SandboxInputs, Vec<HostWarning>), HostError> {
    let settings = &inner.settings;
    let failed = |error: &(dyn std::error::Error + 'static)| HostError::sandbox(error);
    let dns = dns(inner, pod)?;
    // Without a cluster there is no cluster DNS, so this warning is expected.
    let is_relevant = |warning: &&DnsWarning| !matches!(warning, DnsWarning::MissingClusterDns);
    let notes = dns
        .warnings
        .iter()
        .filter(is_relevant)
        .map(|warning| (warning.reason(), warning.message(Some(pod))))
        .collect();
    let hostname = pod_hostname(pod, &settings.cluster_domain).map_err(|error| failed(&error))?;
    let hostname = hostname
        .kernel_name(pod.spec.set_hostname_as_fqdn)
        .map_err(|error| failed(&error))?;
    let inputs = SandboxInputs {
        attempt,
        log_directory: inner
            .log_dir(&pod.name, &pod.uid)?
            .path()
            .display()
            .to_string(),
        hostname,
        dns: v1::DnsConfig {
            servers: dns.settings.servers,
            searches: dns.settings.searches,
            options: dns.settings.options,
        },
        cgroup_parent: inner.cgroups.parent(pod, driver)?,
        resources: None,
        users: users::users(inner, pod)?,
    };
    Ok((inputs, notes))
}

fn dns(inner: &LocalHostState, pod: &Pod) -> Result<PodDns, HostError> {
    let settings = &inner.settings;
    let host_text = match settings.resolv_conf.as_str() {
        "" => None,
        path => Some(resolv_conf(Path::new(path))?),
    };
    let inputs = DnsInputs {
        host_resolv_conf: host_text.as_deref(),
        cluster_dns: &settings.cluster_dns,
        cluster_domain: &settings.cluster_domain,
        node_ips: &settings.node_ips.now(),
    };
    pod_dns(pod, &inputs).map_err(|error| HostError::sandbox(&error))
}

/// The nameservers of a pod.
pub(super) fn nameservers(inner: &LocalHostState, pod: &Pod) -> Vec<IpAddr> {
    let servers = dns(inner, pod).map(|dns| dns.settings.servers);
    let servers = servers.unwrap_or_default().into_iter();
    servers.filter_map(|server| server.parse().ok()).collect()
}

fn resolv_conf(path: &Path) -> Result<String, HostError> {
    match read_optional(path) {
        Ok(bytes) => Ok(String::from_utf8_lossy(&bytes.unwrap_or_default()).into_owned()),
        Err(error) => Err(HostError {
            reason: event_reason::FAILED_SANDBOX,
            message: failed_sandbox(&format!(
                "cannot read resolvConf {}: {error}",
                path.display()
            )),
        }),
    }
}

/// Reads the files that a container's environment variables refer to.
pub(super) fn env_files(
    inner: &LocalHostState,
    pod: &Pod,
    container: &str,
) -> Result<EnvFiles, HostError> {
    let mounted = directories::mounted(inner, pod)?;
    let container = pod.spec.container(container).into_iter();
    let variables = container.flat_map(|container| &container.env);
    let mut files = EnvFiles::new();
    for variable in variables {
        let EnvValue::FileKey(FileKeyRef { volume, path, .. }) = &variable.value else {
            continue;
        };
        let failed = |why: &dyn std::fmt::Display| HostError {
            reason: event_reason::FAILED_MOUNT,
            message: format!("cannot read the env file {path:?} of the volume {volume:?}: {why}"),
        };
        let directory = mounted.path(volume);
        let directory = directory.ok_or_else(|| failed(&"the volume is not mounted"))?;
        let text = env_file::read(directory, path).map_err(|error| failed(&error))?;
        files.insert((volume.clone(), path.clone()), text);
    }
    Ok(files)
}

/// Prepares volumes and sub-paths, `/etc/hosts` and the file of the termination message.
pub(super) fn container_files(
    inner: &LocalHostState,
    pod: &Pod,
    container: &Container,
    env: &[(String, String)],
    pod_ips: &[Box<str>],
) -> Result<ContainerFiles, HostError> {
    let dirs = directories::dirs(inner, &pod.uid)?;
    let mounted = directories::mounted(inner, pod)?;
    let mut sub_paths = BTreeMap::new();
    for (index, mount) in container.mounts.iter().enumerate() {
        let path = match &mount.sub_path {
            SubPath::Whole => continue,
            SubPath::Path(path) => path.to_string(),
            SubPath::Expression(text) => expand(text, |name| lookup(env, name)),
        };
        let Some(volume_path) = mounted.path(&mount.volume) else {
            let volume = pod.spec.volume(&mount.volume);
            if volume.is_some_and(|volume| matches!(volume.source, VolumeSource::Image { .. })) {
                // The runtime resolves it inside the image.
                sub_paths.insert(index, path);
            }
            continue;
        };
        let request = SubPathRequest {
            volume: &mount.volume,
            volume_path,
            container: &container.name,
            index,
            sub_path: &path,
        };
        let prepared = sub_path::prepare(&dirs, &request)
            .map_err(|error| HostError::new(event_reason::FAILED_MOUNT, &error))?;
        sub_paths.insert(index, prepared.display().to_string());
    }
    let termination_log = termination_log::create(&dirs, &container.name)
        .map_err(|error| HostError::new(event_reason::FAILED_MOUNT, &error))?;
    let logs = inner.log_dir(&pod.name, &pod.uid)?;
    create_container_log_dir(&logs, &container.name)
        .map_err(|error| HostError::new(event_reason::FAILED, &error))?;
    Ok(ContainerFiles {
        volumes: mounted
            .paths
            .iter()
            .map(|(name, path)| (name.clone(), path.display().to_string()))
            .collect(),
        sub_paths,
        etc_hosts: hosts_file(inner, pod, &dirs, pod_ips)?,
        termination_log: Some(termination_log.display().to_string()),
        images: BTreeMap::new(),
        users: users::users(inner, pod)?,
        recursive_read_only: false,
    })
}

/// Writes the pod's `/etc/hosts`. While the pod's address is unknown, the container has the image's
/// own file.
fn hosts_file(
    inner: &LocalHostState,
    pod: &Pod,
    dirs: &rubelet_volumes::PodDirs,
    pod_ips: &[Box<str>],
) -> Result<Option<String>, HostError> {
    let failed = |message: String| HostError {
        reason: event_reason::FAILED_MOUNT,
        message,
    };
    let aliases = &pod.spec.host_aliases;
    let content = if pod.spec.host_network {
        let host = read_optional(Path::new("/etc/hosts"))
            .map_err(|error| failed(format!("cannot read /etc/hosts: {error}")))?;
        etc_hosts::host_network_hosts(&host.unwrap_or_default(), aliases)
    } else if pod_ips.is_empty() {
        return Ok(None);
    } else {
        let hostname = pod_hostname(pod, &inner.settings.cluster_domain)
            .map_err(|error| HostError::new(event_reason::FAILED_MOUNT, &error))?;
        etc_hosts::pod_hosts(pod_ips, &hostname, aliases).into_bytes()
    };
    let path = etc_hosts::write(dirs, &content)
        .map_err(|error| failed(format!("cannot write the pod's hosts file: {error}")))?;
    Ok(Some(path.display().to_string()))
}
