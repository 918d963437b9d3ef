//! The bundle of a container: its specification, its filter of system calls, its cgroup.

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
        self, Built, Filter, ImageVolume, Namespaces, Placement, PodFiles, SpecInput,
    },
    profile,
    record::UserRecord,
    seccomp,
    state::ContainerCall,
    user::{self, Accounts},
};
use rubelet_shim::{log, protocol::CreateContainer};

use super::{
    create::Making,
    scope::{self, Holder},
};
use crate::{
    apparmor, cdi,
    engine::Engine,
    fault::{Fault, Outcome},
    handler::Handler,
    host_devices,
    layout::private_dir,
    mount_sources,
};
use rubelet_cri::v1::{self, NamespaceMode};

/// Longest profile of system calls that is read.
const LONGEST_PROFILE: u64 = 4 << 20;

/// What the supervisor and the record have to know.
#[derive(Debug)]
pub(super) struct Prepared {
    pub(super) has_seccomp: bool,
    pub(super) user: UserRecord,
    /// Keeps the scope until the container is in it.
    pub(super) holder: Option<Holder>,
}

/// What was found on the host, in what a container asks for.
struct Found {
    passwd: Option<String>,
    group: Option<String>,
    sources: Vec<container_spec::MountSource>,
    image_volumes: Vec<ImageVolume>,
    devices: Vec<Vec<container_spec::HostDevice>>,
    host_devices: Vec<container_spec::HostDevice>,
    cdi_devices: cdi::Devices,
    seccomp_profile: Option<String>,
    apparmor: apparmor::Loaded,
}

/// Writes the bundle and makes the cgroup.
pub(super) async fn prepare(
    making: &Making,
    layers: &RootfsLayers,
    volumes: Vec<Vec<PathBuf>>,
    image_volumes: Vec<ImageVolume>,
) -> Outcome<Prepared> {
    let namespaces = namespaces(making)?;
    let mut found = find(making, layers, volumes).await?;
    found.image_volumes = image_volumes;
    let accounts = Accounts {
        passwd: found.passwd.as_deref(),
        group: found.group.as_deref(),
    };
    let security = security(&making.config);
    let user = user::resolve(accounts, &making.image.config.user, security)?;
    let built = build(making, &found, namespaces, &user)?;
    let (spec, filter) = filter(making, built)?;
    let engine = Arc::clone(&making.engine);
    let dir = engine
        .layout
        .sandbox(&making.sandbox.id)
        .bundle(&making.container.id);
    let log_path = making.container.record().log_path.clone();
    // Whoever makes the container by himself makes its cgroup, too.
    let cgroup = matches!(making.handler, Handler::Embedded).then(|| making.cgroup.path.clone());
    let record = UserRecord {
        uid: user.uid,
        gid: user.gid,
        groups: user.additional_gids,
    };
    let holder = match &making.cgroup.scope {
        Some(scope) if cgroup.is_some() => {
            let limits = spec.linux.resources.clone().unwrap_or_default();
            let layout = engine.cgroups.layout();
            let executable = &engine.settings.executable;
            Some(scope::start(scope.clone(), executable, layout, limits).await?)
        }
        _ => None,
    };
    making
        .engine
        .blocking(move || {
            write(&dir, &spec, filter.as_deref())?;
            if !log_path.is_empty() {
                log::make_dir(Path::new(&log_path)).map_err(|error| {
                    Fault::because(
                        format!("cannot create the directory of the log {log_path}"),
                        &error,
                    )
                })?;
            }
            if let Some(path) = cgroup {
                let resources = spec.linux.resources.unwrap_or_default();
                make_cgroup(&engine, &path, &resources)?;
            }
            Ok(Prepared {
                has_seccomp: filter.is_some(),
                user: record,
                holder,
            })
        })
        .await
}

/// The text of a file of the image.
fn image_file(layers: &RootfsLayers, path: &str) -> Outcome<Option<String>> {
    layers
        .read_text(Path::new(path))
        .map_err(|error| match error {
            StoreError::LongFile { .. } => Fault::invalid(error.to_string()),
            error => Fault::because("cannot look into the image", &error),
        })
}

/// Looks at the host.
async fn find(
    making: &Making,
    layers: &RootfsLayers,
    volumes: Vec<Vec<PathBuf>>,
) -> Outcome<Found> {
    let (config, layers) = (Arc::clone(&making.config), layers.clone());
    let file = profile::seccomp_file(&config, &making.engine.facts)?;
    let has_apparmor = making.engine.facts.apparmor;
    let named = rubelet_runtime_plan::cdi::wanted(&config)?;
    let cdi_dirs = making.engine.settings.cdi_spec_dirs.clone();
    let paths = config.mounts.iter().map(|mount| mount.host_path.clone());
    let paths = paths.filter(|path| !path.is_empty()).collect();
    let work = move || {
        let privileged = security(&config).is_some_and(|security| security.privileged);
        Ok(Found {
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
                apparmor::Loaded::default()
            },
        })
    };
    making.engine.paths.look(paths, work).await
}

fn build(
    making: &Making,
    found: &Found,
    namespaces: Namespaces,
    user: &user::ResolvedUser,
) -> Outcome<Built> {
    let engine = &making.engine;
    let dir = engine.layout.sandbox(&making.sandbox.id);
    let rootfs = dir.bundle(&making.container.id).join("rootfs");
    let host_ipc = making.sandbox.record().namespaces.ipc == NamespaceMode::Node as i32;
    let shm = if host_ipc {
        PathBuf::from("/dev/shm")
    } else {
        dir.shm()
    };
    let input = SpecInput {
        id: &making.container.id,
        sandbox_id: &making.sandbox.id,
        sandbox: &making.pod,
        container: &making.config,
        image: &making.image.config,
        user,
        host: &engine.facts,
        namespaces,
        cgroup: &making.cgroup,
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

/// In which namespaces the container is. Those of the pod are held by its supervisor.
fn namespaces(making: &Making) -> Outcome<Namespaces> {
    let sandbox = making.sandbox.record();
    let dir = making.engine.layout.sandbox(&sandbox.id);
    let node = NamespaceMode::Node as i32;
    let joined = |kind: &str| {
        making
            .sandbox
            .namespace(kind)
            .map(Placement::Join)
            .ok_or_else(|| Fault::failed(format!("the pod's supervisor holds no {kind} namespace")))
    };
    let options = security(&making.config).and_then(|security| security.namespace_options.as_ref());
    // A container may see other processes than the pod says, as ephemeral ones do.
    let pid = options.map_or(sandbox.namespaces.pid, |options| options.pid);
    Ok(Namespaces {
        network: if sandbox.namespaces.network == node {
            Placement::Host
        } else {
            Placement::Join(dir.netns())
        },
        ipc: if sandbox.namespaces.ipc == node {
            Placement::Host
        } else {
            joined("ipc")?
        },
        // A pod on the host's network has the host's name.
        uts: if sandbox.namespaces.network == node {
            Placement::Host
        } else {
            joined("uts")?
        },
        pid: match NamespaceMode::try_from(pid) {
            Ok(NamespaceMode::Pod) => joined("pid")?,
            Ok(NamespaceMode::Container) => Placement::New,
            Ok(NamespaceMode::Node) => Placement::Host,
            Ok(NamespaceMode::Target) => {
                target(making, options.map_or("", |options| &options.target_id))?
            }
            Err(_) => return Err(Fault::invalid(format!("unknown PID namespace mode {pid}"))),
        },
        user: if sandbox.namespaces.user.is_some() {
            joined("user")?
        } else {
            Placement::Host
        },
    })
}

/// The container whose processes this one sees, if it asks for that.
pub(super) fn target_id(config: &v1::ContainerConfig) -> Option<&str> {
    let options = security(config)?.namespace_options.as_ref()?;
    (options.pid == NamespaceMode::Target as i32).then_some(&options.target_id)
}

fn target(making: &Making, id: &str) -> Outcome<Placement> {
    let found = making.engine.container(ContainerCall::Target, id)?;
    let target = found.ok_or_else(|| Fault::not_found(format!("there is no container {id:?}")))?;
    if target.sandbox.id != making.sandbox.id {
        return Err(Fault::invalid(format!(
            "the target container {id:?} is in another sandbox"
        )));
    }
    target.verdict(ContainerCall::Target)?;
    // The supervisor makes it, from a descriptor: a process ID may be another process's by then.
    let dir = making.engine.layout.sandbox(&making.sandbox.id);
    let link = dir
        .bundle(&making.container.id)
        .join(CreateContainer::PID_NAMESPACE);
    Ok(Placement::Join(link))
}

fn read_profile(file: &Path) -> Outcome<String> {
    let failed = |error: io::Error| {
        Fault::because(
            format!("cannot read the seccomp profile {}", file.display()),
            &error,
        )
    };
    let size = fs::metadata(file).map_err(failed)?.len();
    if size > LONGEST_PROFILE {
        return Err(Fault::invalid(format!(
            "the seccomp profile {} has {size} bytes, which is no profile",
            file.display()
        )));
    }
    fs::read_to_string(file).map_err(failed)
}

/// The specification as who makes the container reads it, and the compiled filter of system calls.
fn filter(making: &Making, built: Built) -> Outcome<(Spec, Option<Arc<[u8]>>)> {
    let arch = making.engine.facts.arch;
    if making.handler != Handler::Embedded {
        let mut spec = built.whole(arch);
        container_spec::for_other_runtime(&mut spec);
        return Ok((spec, None));
    }
    let program = match built.filter {
        Filter::Unconfined => None,
        Filter::Default(capabilities, socketcall) => {
            let filters = &making.engine.filters;
            Some(filters.of(capabilities, socketcall, arch)?)
        }
        Filter::Profile => {
            let profile = built.spec.linux.seccomp.iter();
            let mut programs = profile.map(|profile| seccomp::compile(profile, arch));
            programs.next().transpose()?.map(Arc::from)
        }
    };
    Ok((built.spec, program))
}

/// Writes the files of a bundle.
fn write(dir: &Path, spec: &Spec, filter: Option<&[u8]>) -> Outcome<()> {
    let failed = |path: PathBuf| {
        move |error: io::Error| Fault::because(format!("cannot create {}", path.display()), &error)
    };
    let rootfs = dir.join("rootfs");
    private_dir(&rootfs).map_err(failed(rootfs.clone()))?;
    let config = dir.join("config.json");
    let text = serde_json::to_vec(spec)
        .map_err(|error| Fault::because("cannot write the container's specification", &error))?;
    put(&config, &text).map_err(failed(config.clone()))?;
    if let Some(filter) = filter {
        let file = dir.join("seccomp.bpf");
        put(&file, filter).map_err(failed(file.clone()))?;
    }
    Ok(())
}

fn put(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut file: File = fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(content)
}

/// A limit or a device rule that is not in force must not go unnoticed.
fn make_cgroup(
    engine: &Engine,
    path: &rubelet_base::cgroup::CgroupPath,
    resources: &LinuxResources,
) -> Outcome<()> {
    let cgroups = &engine.cgroups;
    let failed = "cannot make the container's cgroup";
    cgroups
        .create(path)
        .map_err(|error| Fault::because(failed, &error))?;
    cgroups
        .apply(path, resources)
        .map_err(|error| Fault::because(failed, &error))?;
    cgroups
        .apply_devices(path, &resources.devices)
        .map_err(|error| Fault::because(failed, &error))
}
