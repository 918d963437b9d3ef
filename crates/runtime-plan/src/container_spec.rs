//! Builds the OCI specification from a container's configuration.

mod devices;
mod input;
mod mounts;
mod other_runtime;
mod process;
#[cfg(test)]
mod tests;

pub use input::{
    ContainerNamespaces, HostDevice, ImageVolume, MountSource, NamespacePlacement, PodFiles,
    Propagation, SpecInput,
};
pub(crate) use mounts::clean;
pub use other_runtime::for_other_runtime;

use rubelet_cgroup_plan::CgroupLayout;
use rubelet_cri::v1;
use rubelet_oci::{Linux, Namespace, NamespaceKind, Root, Seccomp, Spec};

use crate::{Refusal, capability::CapSet, profile, resources, seccomp, userns};

/// A specification, and the seccomp filter for it.
#[derive(Debug, Clone, PartialEq)]
pub struct BuiltSpec {
    /// The specification. The default filter is not in it: it names hundreds of calls, and readers
    /// of it use the compiled one.
    pub spec: Spec,
    /// The filter.
    pub filter: SeccompFilter,
}

/// The filter of system calls of a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SeccompFilter {
    /// None.
    Unconfined,
    /// [`seccomp::runtime_default`] for that bounding set.
    Default(CapSet, seccomp::Socketcall),
    /// The profile in the specification.
    Profile,
}

impl BuiltSpec {
    /// The specification with every filter in it, for runtimes that compile it themselves.
    #[must_use]
    pub fn whole(mut self, arch: seccomp::Arch) -> Spec {
        if let SeccompFilter::Default(capabilities, socketcall) = self.filter {
            let profile = seccomp::runtime_default(&capabilities, socketcall, arch);
            self.spec.linux.seccomp = Some(profile);
        }
        self.spec
    }
}

/// Builds the specification.
///
/// # Errors
/// A request that can't be fulfilled.
pub fn build(input: &SpecInput<'_>) -> Result<BuiltSpec, Refusal> {
    let container = input.container;
    refuse_what_is_missing(container)?;
    let empty = v1::LinuxContainerSecurityContext::default();
    let linux = container.linux.as_ref();
    let security = linux
        .and_then(|linux| linux.security_context.as_ref())
        .unwrap_or(&empty);
    check_against_sandbox(input, security)?;
    let mappings = userns::mappings(
        security
            .namespace_options
            .as_ref()
            .and_then(|options| options.userns_options.as_ref()),
    )?;
    profile::selinux(security.selinux_options.as_ref(), input.host)?;
    let process = process::process(input, security)?;
    let namespaces = namespaces(input, security);
    let mounts = mounts::mounts(input, security, mappings.is_some(), &namespaces)?;
    let mut resources = match linux.and_then(|linux| linux.resources.as_ref()) {
        None => rubelet_oci::LinuxResources::default(),
        Some(wanted) => resources::create(wanted, input.host)?,
    };
    let (devices, rules) = devices::devices(input, security)?;
    resources.devices = rules;
    let caps = process.capabilities.as_ref().map_or(CapSet::EMPTY, |sets| {
        CapSet::of(sets.bounding.iter().map(String::as_str))
    });
    let is_own = process.apparmor_profile == profile::APPARMOR_DEFAULT;
    let socketcall = if is_own && input.apparmor_denies_families {
        seccomp::Socketcall::Allowed
    } else {
        seccomp::Socketcall::Absent
    };
    let (filter, profile) = filter(input, security, caps, socketcall)?;
    let paths = |list: &[String]| {
        if security.privileged {
            Vec::new()
        } else {
            list.to_vec()
        }
    };
    let (uid_mappings, gid_mappings) =
        mappings.map_or_else(Default::default, |mappings| (mappings.uids, mappings.gids));
    let spec = Spec {
        oci_version: rubelet_oci::VERSION.to_owned(),
        process,
        root: Root {
            path: input.rootfs.to_owned(),
            readonly: security.readonly_rootfs,
        },
        hostname: String::new(),
        domainname: String::new(),
        mounts: mounts.mounts,
        annotations: annotations(input),
        linux: Linux {
            namespaces,
            uid_mappings,
            gid_mappings,
            devices,
            cgroups_path: Some(input.cgroup.oci()),
            resources: Some(resources),
            rootfs_propagation: mounts.root_propagation.to_owned(),
            seccomp: profile,
            sysctl: Default::default(),
            masked_paths: paths(&security.masked_paths),
            readonly_paths: paths(&security.readonly_paths),
            mount_label: String::new(),
        },
    };
    Ok(BuiltSpec { spec, filter })
}

/// Refuses unsupported parts of the CRI at the creation, not in the middle of a start.
fn refuse_what_is_missing(container: &v1::ContainerConfig) -> Result<(), Refusal> {
    if container.windows.is_some() {
        return Err(Refusal::new("windows", "this is a runtime for Linux"));
    }
    Ok(())
}

/// Settings of the pod must be the same in both configurations.
fn check_against_sandbox(
    input: &SpecInput<'_>,
    security: &v1::LinuxContainerSecurityContext,
) -> Result<(), Refusal> {
    let pod = input
        .sandbox
        .linux
        .as_ref()
        .and_then(|linux| linux.security_context.as_ref());
    if security.privileged && !pod.is_some_and(|pod| pod.privileged) {
        return Err(Refusal::new(
            "linux.security_context.privileged",
            "no privileged container allowed in sandbox",
        ));
    }
    let users = |options: Option<&v1::NamespaceOption>| {
        userns::mappings(options.and_then(|options| options.userns_options.as_ref()))
    };
    let pods = users(pod.and_then(|pod| pod.namespace_options.as_ref()))?;
    if users(security.namespace_options.as_ref())? != pods {
        return Err(Refusal::new(
            "linux.security_context.namespace_options.userns_options",
            "the user namespace of a container must be that of its sandbox",
        ));
    }
    Ok(())
}

fn namespaces(
    input: &SpecInput<'_>,
    security: &v1::LinuxContainerSecurityContext,
) -> Vec<Namespace> {
    let wanted = &input.namespaces;
    let mut namespaces: Vec<Namespace> = [
        (NamespaceKind::User, &wanted.user),
        (NamespaceKind::Pid, &wanted.pid),
        (NamespaceKind::Ipc, &wanted.ipc),
        (NamespaceKind::Uts, &wanted.uts),
        (NamespaceKind::Network, &wanted.network),
        (NamespaceKind::Mount, &NamespacePlacement::New),
    ]
    .into_iter()
    .filter_map(|(kind, placement)| match placement {
        NamespacePlacement::Host => None,
        NamespacePlacement::New => Some(Namespace { kind, path: None }),
        NamespacePlacement::Join(path) => Some(Namespace {
            kind,
            path: Some(path.clone()),
        }),
    })
    .collect();
    // Version 1 containers see their cgroups below the whole paths, as with other runtimes, and
    // privileged ones see the host's.
    if input.host.cgroups == CgroupLayout::V2 && !security.privileged {
        namespaces.push(Namespace {
            kind: NamespaceKind::Cgroup,
            path: None,
        });
    }
    namespaces
}

fn filter(
    input: &SpecInput<'_>,
    security: &v1::LinuxContainerSecurityContext,
    capabilities: CapSet,
    socketcall: seccomp::Socketcall,
) -> Result<(SeccompFilter, Option<Seccomp>), Refusal> {
    match profile::seccomp(security, input.host)? {
        profile::SeccompChoice::Unconfined => Ok((SeccompFilter::Unconfined, None)),
        profile::SeccompChoice::RuntimeDefault => {
            Ok((SeccompFilter::Default(capabilities, socketcall), None))
        }
        profile::SeccompChoice::Localhost(path) => {
            let Some(text) = input.seccomp_profile else {
                return Err(Refusal::new(
                    "linux.security_context.seccomp",
                    format!("the profile {} was not read", path.display()),
                ));
            };
            let context = seccomp::ProfileContext {
                capabilities,
                arch: input.host.arch,
                kernel: input.host.kernel,
            };
            seccomp::localhost(text, &context)
                .map(|profile| (SeccompFilter::Profile, Some(profile)))
                .map_err(|refusal| {
                    Refusal::new(
                        refusal.field,
                        format!("{}: {}", path.display(), refusal.message),
                    )
                })
        }
    }
}

/// The annotations by which other runtimes and hooks recognise a CRI container.
fn annotations(input: &SpecInput<'_>) -> std::collections::BTreeMap<String, String> {
    let pod = input.sandbox.metadata.as_ref();
    let name = input.container.metadata.as_ref();
    let of_pod = |part: fn(&v1::PodSandboxMetadata) -> &String| pod.map(part);
    [
        ("container-type", Some("container")),
        ("sandbox-id", Some(input.sandbox_id)),
        (
            "container-name",
            name.map(|metadata| metadata.name.as_str()),
        ),
        (
            "image-name",
            input.container.image.as_ref().map(|image| {
                if image.user_specified_image.is_empty() {
                    image.image.as_str()
                } else {
                    image.user_specified_image.as_str()
                }
            }),
        ),
        ("sandbox-name", of_pod(|pod| &pod.name).map(String::as_str)),
        (
            "sandbox-namespace",
            of_pod(|pod| &pod.namespace).map(String::as_str),
        ),
        ("sandbox-uid", of_pod(|pod| &pod.uid).map(String::as_str)),
    ]
    .into_iter()
    .filter_map(|(name, value)| Some((format!("io.kubernetes.cri.{name}"), value?.to_owned())))
    .collect()
}
