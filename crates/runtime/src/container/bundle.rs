//! The bundle of a container: its specification, its seccomp filter, its cgroup.

use std::{
    fs::{self, File},
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    sync::Arc,
};

use rubelet_images::{RootfsLayers, StoreError};
use rubelet_oci::{LinuxResources, Spec};
use rubelet_runtime_plan::{
    container_spec::{
        self, BuiltSpec, ContainerNamespaces, ImageVolume, NamespacePlacement, PodFiles,
        SeccompFilter, SpecInput,
    },
    profile,
    record::UserRecord,
    seccomp,
    state::ContainerCall,
    user::{self, Accounts},
};
use rubelet_shim::{log, protocol::CreateContainer};

use super::{
    creation::ContainerCreation,
    scope::{self, ScopePlaceholder},
};
use crate::{
    apparmor, cdi,
    engine::Engine,
    error::{Result, RuntimeError},
    handler::Handler,
    host_devices,
    layout::private_dir,
    mount_sources,
};
use rubelet_cri::v1::{self, NamespaceMode};

/// Largest seccomp profile that is read.
const MAX_PROFILE_SIZE: u64 = 4 << 20;

/// The prepared bundle: what the shim and the record need.
#[derive(Debug)]
pub(super) struct PreparedBundle {
    pub(super) has_seccomp: bool,
    pub(super) user: UserRecord,
    /// Keeps the scope alive until the container is in it.
    pub(super) holder: Option<ScopePlaceholder>,
}

/// The host's files, devices and profiles that the container requests.
struct HostInputs {
    passwd: Option<String>,
    group: Option<String>,
    sources: Vec<container_spec::MountSource>,
    image_volumes: Vec<ImageVolume>,
    devices: Vec<Vec<container_spec::HostDevice>>,
    host_devices: Vec<container_spec::HostDevice>,
    cdi_devices: cdi::CdiDevices,
    seccomp_profile: Option<String>,
    apparmor: apparmor::AppArmorProfiles,
}

/// Writes the bundle and creates the cgroup.
pub(super) async fn prepare(
    creation: &ContainerCreation,
    layers: &RootfsLayers,
    volumes: Vec<Vec<PathBuf>>,
    image_volumes: Vec<ImageVolume>,
) -> Result<PreparedBundle> {
    let namespaces = namespaces(creation)?;
    // All inputs are read and checked before anything is written: a refusal leaves nothing behind.
    let mut found = find(creation, layers, volumes).await?;
    found.image_volumes = image_volumes;
    let accounts = Accounts {
        passwd: found.passwd.as_deref(),
        group: found.group.as_deref(),
    };
    let security = security(&creation.config);
    let user = user::resolve(accounts, &creation.image.config.user, security)?;
    let built = build(creation, &found, namespaces, &user)?;
    let (spec, filter) = filter(creation, built)?;
    let engine = Arc::clone(&creation.engine);
    let dir = engine
        .layout
        .sandbox(&creation.sandbox.id)
        .bundle(&creation.container.id);
    let log_path = creation.container.record().log_path.clone();
    // An external runtime creates the cgroup itself.
    let cgroup =
        matches!(creation.handler, Handler::Embedded).then(|| creation.cgroup.path.clone());
    let record = UserRecord {
        uid: user.uid,
        gid: user.gid,
        groups: user.additional_gids,
    };
    // Before the limits below: systemd creates the cgroup of a scope. It gets the limits as well, as
    // it would undo those that it does not know at `systemctl daemon-reload`.
    let holder = match &creation.cgroup.scope {
        Some(scope) if cgroup.is_some() => {
            let limits = spec.linux.resources.clone().unwrap_or_default();
            let layout = engine.cgroups.layout();
            let executable = &engine.settings.executable;
            Some(scope::start(scope.clone(), executable, layout, limits).await?)
        }
        _ => None,
    };
    creation
        .engine
        .blocking(move || {
            write(&dir, &spec, filter.as_deref())?;
            if !log_path.is_empty() {
                log::make_dir(Path::new(&log_path)).map_err(|error| {
                    RuntimeError::because(
                        format!("cannot create the directory of the log {log_path}"),
                        &error,
                    )
                })?;
            }
            // Before the init joins the cgroup: the limits hold from its first allocation on.
            if let Some(path) = cgroup {
                let resources = spec.linux.resources.unwrap_or_default();
                make_cgroup(&engine, &path, &resources)?;
            }
            Ok(PreparedBundle {
                has_seccomp: filter.is_some(),
                user: record,
                holder,
            })
        })
        .await
}

/// Reads a text file of the image.
fn image_file(layers: &RootfsLayers, path: &str) -> Result<Option<String>> {
    layers
        .read_text(Path::new(path))
        .map_err(|error| match error {
            StoreError::LongFile { .. } => RuntimeError::invalid(error.to_string()),
            error => RuntimeError::because("cannot read a file of the image", &error),
        })
}

/// Looks up what the container requests on the host.
async fn find(
    creation: &ContainerCreation,
    layers: &RootfsLayers,
    volumes: Vec<Vec<PathBuf>>,
) -> Result<HostInputs> {
    let (config, layers) = (Arc::clone(&creation.config), layers.clone());
    let file = profile::seccomp_file(&config, &creation.engine.facts)?;
    let has_apparmor = creation.engine.facts.apparmor;
    let named = rubelet_runtime_plan::cdi::wanted(&config)?;
    let cdi_dirs = creation.engine.settings.cdi_spec_dirs.clone();
    // A mount's source may be on a server that is away, and hang in any system call. Such a path is
    // not looked up again while it hangs, and delays only the pods that name it.
    let paths = config.mounts.iter().map(|mount| mount.host_path.clone());
    let paths = paths.filter(|path| !path.is_empty()).collect();
    let work = move || {
        let privileged = security(&config).is_some_and(|security| security.privileged);
        Ok(HostInputs {
            passwd: image_file(&layers, "etc/passwd")?,
            group: image_file(&layers, "etc/group")?,
            sources: mount_sources::find(&config.mounts, volumes)?,
            image_volumes: Vec::new(),
            devices: host_devices::wanted(&config.devices)?,
            host_devices: if privileged {
                host_devices::all()?
            } else {
                Vec::new()
            },
            cdi_devices: cdi::find(&cdi_dirs, &named)?,
            seccomp_profile: file.map(|file| read_profile(&file)).transpose()?,
            apparmor: if has_apparmor {
                apparmor::profiles_with_own()
            } else {
                apparmor::AppArmorProfiles::default()
            },
        })
    };
    creation.engine.paths.with_lookup(paths, work).await
}

fn build(
    creation: &ContainerCreation,
    found: &HostInputs,
    namespaces: ContainerNamespaces,
    user: &user::ResolvedUser,
) -> Result<BuiltSpec> {
    let engine = &creation.engine;
    let dir = engine.layout.sandbox(&creation.sandbox.id);
    let rootfs = dir.bundle(&creation.container.id).join("rootfs");
    let host_ipc = creation.sandbox.record().namespaces.ipc == NamespaceMode::Node as i32;
    let shm = if host_ipc {
        PathBuf::from("/dev/shm")
    } else {
        dir.shm()
    };
    let input = SpecInput {
        id: &creation.container.id,
        sandbox_id: &creation.sandbox.id,
        sandbox: &creation.pod,
        container: &creation.config,
        image: &creation.image.config,
        user,
        host: &engine.facts,
        namespaces,
        cgroup: &creation.cgroup,
        rootfs: &rootfs,
        files: PodFiles {
            shm: &shm,
            resolv_conf: &dir.resolv_conf(),
            hostname: &dir.hostname(),
            hosts: Some(&dir.hosts()),
        },
        sources: &found.sources,
        image_volumes: &found.image_volumes,
        devices: &found.devices,
        host_devices: &found.host_devices,
        seccomp_profile: found.seccomp_profile.as_deref(),
        apparmor_profiles: &found.apparmor.names,
        apparmor_denies_families: found.apparmor.denies_families,
    };
    let mut built = container_spec::build(&input)?;
    found.cdi_devices.apply(&mut built.spec)?;
    Ok(built)
}

pub(super) fn security(config: &v1::ContainerConfig) -> Option<&v1::LinuxContainerSecurityContext> {
    config.linux.as_ref()?.security_context.as_ref()
}

/// The namespaces of the container. Those of the pod are held open by its shim.
fn namespaces(creation: &ContainerCreation) -> Result<ContainerNamespaces> {
    let sandbox = creation.sandbox.record();
    let dir = creation.engine.layout.sandbox(&sandbox.id);
    let node = NamespaceMode::Node as i32;
    let joined = |kind: &str| {
        creation
            .sandbox
            .namespace(kind)
            .map(NamespacePlacement::Join)
            .ok_or_else(|| {
                RuntimeError::failed(format!("the pod's shim holds no {kind} namespace"))
            })
    };
    let options =
        security(&creation.config).and_then(|security| security.namespace_options.as_ref());
    // A container may have another PID mode than its pod, as ephemeral containers do.
    let pid = options.map_or(sandbox.namespaces.pid, |options| options.pid);
    Ok(ContainerNamespaces {
        network: if sandbox.namespaces.network == node {
            NamespacePlacement::Host
        } else {
            NamespacePlacement::Join(dir.netns())
        },
        ipc: if sandbox.namespaces.ipc == node {
            NamespacePlacement::Host
        } else {
            joined("ipc")?
        },
        // A pod on the host's network has the host's name.
        uts: if sandbox.namespaces.network == node {
            NamespacePlacement::Host
        } else {
            joined("uts")?
        },
        pid: match NamespaceMode::try_from(pid) {
            Ok(NamespaceMode::Pod) => joined("pid")?,
            Ok(NamespaceMode::Container) => NamespacePlacement::New,
            Ok(NamespaceMode::Node) => NamespacePlacement::Host,
            Ok(NamespaceMode::Target) => {
                target(creation, options.map_or("", |options| &options.target_id))?
            }
            Err(_) => {
                return Err(RuntimeError::invalid(format!(
                    "unknown PID namespace mode {pid}"
                )));
            }
        },
        user: if sandbox.namespaces.user.is_some() {
            joined("user")?
        } else {
            NamespacePlacement::Host
        },
    })
}

/// The target container of the PID namespace, if one is requested.
pub(super) fn target_id(config: &v1::ContainerConfig) -> Option<&str> {
    let options = security(config)?.namespace_options.as_ref()?;
    (options.pid == NamespaceMode::Target as i32).then_some(&options.target_id)
}

fn target(creation: &ContainerCreation, id: &str) -> Result<NamespacePlacement> {
    let found = creation.engine.container(ContainerCall::Target, id)?;
    let target = found.ok_or_else(|| RuntimeError::container_not_found(id))?;
    if target.sandbox.id != creation.sandbox.id {
        return Err(RuntimeError::invalid(format!(
            "the target container {id:?} is in another sandbox"
        )));
    }
    target.decision(ContainerCall::Target)?;
    // The shim creates this file from a descriptor: a path with a PID could name another process by
    // then.
    let dir = creation.engine.layout.sandbox(&creation.sandbox.id);
    let link = dir
        .bundle(&creation.container.id)
        .join(CreateContainer::PID_NAMESPACE);
    Ok(NamespacePlacement::Join(link))
}

fn read_profile(file: &Path) -> Result<String> {
    let failed = |error: io::Error| {
        RuntimeError::because(
            format!("cannot read the seccomp profile {}", file.display()),
            &error,
        )
    };
    let size = fs::metadata(file).map_err(failed)?.len();
    if size > MAX_PROFILE_SIZE {
        return Err(RuntimeError::invalid(format!(
            "the seccomp profile {} is too large: {size} bytes, at most {MAX_PROFILE_SIZE} are allowed",
            file.display()
        )));
    }
    fs::read_to_string(file).map_err(failed)
}

/// The specification in the form for the handler, and the compiled seccomp filter.
fn filter(creation: &ContainerCreation, built: BuiltSpec) -> Result<(Spec, Option<Arc<[u8]>>)> {
    let arch = creation.engine.facts.arch;
    // An external runtime reads the profile from the specification and compiles it itself.
    if creation.handler != Handler::Embedded {
        let mut spec = built.whole(arch);
        container_spec::for_other_runtime(&mut spec);
        return Ok((spec, None));
    }
    let program = match built.filter {
        SeccompFilter::Unconfined => None,
        SeccompFilter::Default(capabilities, socketcall) => {
            let filters = &creation.engine.filters;
            Some(filters.of(capabilities, socketcall, arch)?)
        }
        // Not cached: the file of a `Localhost` profile may be edited at any time.
        SeccompFilter::Profile => {
            let profile = built.spec.linux.seccomp.iter();
            let mut programs = profile.map(|profile| seccomp::compile(profile, arch));
            programs.next().transpose()?.map(Arc::from)
        }
    };
    Ok((built.spec, program))
}

/// Writes the files of a bundle. They are not flushed: after a power failure no process is left that
/// they describe, and the container is created again.
fn write(dir: &Path, spec: &Spec, filter: Option<&[u8]>) -> Result<()> {
    let failed = |path: PathBuf| {
        move |error: io::Error| {
            RuntimeError::because(format!("cannot create {}", path.display()), &error)
        }
    };
    let rootfs = dir.join("rootfs");
    private_dir(&rootfs).map_err(failed(rootfs.clone()))?;
    let config = dir.join("config.json");
    let text = serde_json::to_vec(spec).map_err(|error| {
        RuntimeError::because("cannot write the container's OCI specification", &error)
    })?;
    put(&config, &text).map_err(failed(config.clone()))?;
    if let Some(filter) = filter {
        let file = dir.join("seccomp.bpf");
        put(&file, filter).map_err(failed(file.clone()))?;
    }
    Ok(())
}

/// Writes a file that only root can read: the specification contains the container's environment,
/// and thus secrets.
fn put(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut file: File = fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(content)
}

/// Fails if any limit or device rule can't be applied: a container must not run without it
/// unnoticed.
fn make_cgroup(
    engine: &Engine,
    path: &rubelet_cgroup_plan::CgroupPath,
    resources: &LinuxResources,
) -> Result<()> {
    let cgroups = &engine.cgroups;
    let failed = "cannot create the container's cgroup";
    cgroups
        .create(path)
        .map_err(|error| RuntimeError::because(failed, &error))?;
    cgroups
        .apply(path, resources)
        .map_err(|error| RuntimeError::because(failed, &error))?;
    cgroups
        .apply_devices(path, &resources.devices)
        .map_err(|error| RuntimeError::because(failed, &error))
}
