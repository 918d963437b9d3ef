//! Specifications as kubelets and operators ask for them.

use std::path::{Path, PathBuf};

use rubelet_cgroup_plan::{CgroupDriver, runtime_cgroup};
use rubelet_oci::{DeviceKind, NO_SYMLINKS, image::ImageConfig};

use super::*;
use crate::{
    host::{HostFacts, tests::host},
    user::ResolvedUser,
};

/// A request and what was found on the host for it.
struct SpecRequest {
    sandbox: v1::PodSandboxConfig,
    container: v1::ContainerConfig,
    image: ImageConfig,
    host: HostFacts,
    namespaces: ContainerNamespaces,
    sources: Vec<MountSource>,
    image_volumes: Vec<ImageVolume>,
    devices: Vec<Vec<HostDevice>>,
    host_devices: Vec<HostDevice>,
    profile: Option<&'static str>,
}

impl SpecRequest {
    fn new() -> Self {
        Self {
            sandbox: v1::PodSandboxConfig {
                hostname: "web".into(),
                linux: Some(v1::LinuxPodSandboxConfig {
                    security_context: Some(Default::default()),
                    ..Default::default()
                }),
                ..Default::default()
            },
            container: v1::ContainerConfig {
                linux: Some(v1::LinuxContainerConfig {
                    resources: Some(Default::default()),
                    security_context: Some(Default::default()),
                }),
                ..Default::default()
            },
            image: ImageConfig {
                entrypoint: vec!["/app".into()],
                cmd: vec!["--serve".into()],
                env: vec!["PATH=/bin".into(), "A=image".into()],
                ..Default::default()
            },
            host: host(),
            namespaces: ContainerNamespaces {
                network: NamespacePlacement::Join("/run/net".into()),
                ipc: NamespacePlacement::Join("/run/ipc".into()),
                uts: NamespacePlacement::Join("/run/uts".into()),
                pid: NamespacePlacement::New,
                user: NamespacePlacement::Host,
            },
            sources: Vec::new(),
            image_volumes: Vec::new(),
            devices: Vec::new(),
            host_devices: Vec::new(),
            profile: None,
        }
    }

    fn security(&mut self) -> &mut v1::LinuxContainerSecurityContext {
        let linux = self.container.linux.as_mut().unwrap();
        linux.security_context.as_mut().unwrap()
    }

    fn pod_security(&mut self) -> &mut v1::LinuxSandboxSecurityContext {
        let linux = self.sandbox.linux.as_mut().unwrap();
        linux.security_context.as_mut().unwrap()
    }

    fn mount(&mut self, mount: v1::Mount, propagation: Propagation) -> &mut Self {
        self.sources.push(MountSource {
            path: mount.host_path.clone().into(),
            mount_point: "/".into(),
            propagation,
            layers: match &mount.image {
                Some(_) => vec!["/layers/2/fs".into(), "/layers/1/fs".into()],
                None => Vec::new(),
            },
        });
        self.container.mounts.push(mount);
        self
    }

    fn build(&self) -> Result<Spec, Refusal> {
        let user = ResolvedUser {
            uid: 7,
            gid: 8,
            additional_gids: vec![8, 9],
            home: "/home/seven".into(),
        };
        let built = build(&SpecInput {
            id: "c1",
            sandbox_id: "s1",
            sandbox: &self.sandbox,
            container: &self.container,
            image: &self.image,
            user: &user,
            host: &self.host,
            namespaces: self.namespaces.clone(),
            cgroup: &runtime_cgroup::container("/pods/u1", "c1", CgroupDriver::Cgroupfs).unwrap(),
            rootfs: Path::new("rootfs"),
            files: PodFiles {
                shm: Path::new("/run/pod/shm"),
                resolv_conf: Path::new("/run/pod/resolv.conf"),
                hostname: Path::new("/run/pod/hostname"),
                hosts: None,
            },
            sources: &self.sources,
            image_volumes: &self.image_volumes,
            devices: &self.devices,
            host_devices: &self.host_devices,
            seccomp_profile: self.profile,
            apparmor_profiles: &[],
            apparmor_denies_families: false,
        });
        Ok(built?.whole(self.host.arch))
    }

    fn refused(&self) -> String {
        self.build().unwrap_err().to_string()
    }
}

fn plain(container_path: &str) -> v1::Mount {
    v1::Mount {
        container_path: container_path.into(),
        host_path: "/srv/data".into(),
        ..Default::default()
    }
}

fn at<'a>(spec: &'a Spec, destination: &str) -> &'a rubelet_oci::Mount {
    let mut found = spec
        .mounts
        .iter()
        .filter(|mount| mount.destination == Path::new(destination));
    let one = found.next().unwrap_or_else(|| panic!("no {destination}"));
    assert!(found.next().is_none(), "{destination} twice");
    one
}

#[test]
fn an_ordinary_container_is_confined_and_knows_its_pod() {
    let spec = SpecRequest::new().build().unwrap();
    assert_eq!(spec.process.args, ["/app", "--serve"]);
    assert_eq!(
        spec.process.env,
        ["PATH=/bin", "HOSTNAME=web", "A=image", "HOME=/home/seven"]
    );
    assert_eq!(spec.process.cwd, Path::new("/"));
    let user = &spec.process.user;
    assert_eq!(
        (user.uid, user.gid, &*user.additional_gids),
        (7, 8, &[8, 9][..])
    );
    assert_eq!(spec.linux.cgroups_path.as_deref(), Some("/pods/u1/c1"));
    for kind in [
        NamespaceKind::Pid,
        NamespaceKind::Mount,
        NamespaceKind::Cgroup,
    ] {
        assert_eq!(spec.linux.namespace(kind).unwrap().path, None);
    }
    let network = spec.linux.namespace(NamespaceKind::Network).unwrap();
    assert_eq!(network.path, Some(PathBuf::from("/run/net")));
    assert!(spec.linux.namespace(NamespaceKind::User).is_none());
    for file in ["/etc/hostname", "/etc/resolv.conf", "/dev/shm"] {
        assert!(at(&spec, file).is_bind(), "{file}");
    }
    assert!(at(&spec, "/sys").has("ro") && at(&spec, "/sys/fs/cgroup").has("ro"));
    let rules = &spec.linux.resources.as_ref().unwrap().devices;
    assert!(!rules[0].allow && rules[0].kind == DeviceKind::All);
    assert!(!spec.process.no_new_privileges);
    assert!(spec.linux.seccomp.is_none());
}

#[test]
fn commands_and_arguments_replace_the_images_as_in_docker() {
    let args = |command: &[&str], args: &[&str]| {
        let mut asked = SpecRequest::new();
        let list = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        asked.container.command = list(command);
        asked.container.args = list(args);
        asked.build().unwrap().process.args
    };
    assert_eq!(args(&["/x"], &[]), ["/x"]);
    assert_eq!(args(&["/x"], &["y"]), ["/x", "y"]);
    assert_eq!(args(&[], &["y"]), ["/app", "y"]);
    let mut asked = SpecRequest::new();
    asked.image.entrypoint = vec![String::new()];
    assert_eq!(asked.build().unwrap().process.args, ["--serve"]);
    asked.image.cmd.clear();
    assert!(asked.refused().contains("no command specified"));
}

#[test]
fn the_containers_environment_wins_over_the_images() {
    let mut asked = SpecRequest::new();
    asked.container.tty = true;
    for (key, value) in [("A", "pod"), ("HOME", "/h"), ("B", "x=y")] {
        asked.container.envs.push(v1::KeyValue {
            key: key.into(),
            value: value.into(),
        });
    }
    assert_eq!(
        asked.build().unwrap().process.env,
        [
            "PATH=/bin",
            "TERM=xterm",
            "HOSTNAME=web",
            "A=pod",
            "HOME=/h",
            "B=x=y"
        ]
    );
    asked.container.envs[0].value = vec![0xff];
    assert!(asked.refused().starts_with("envs: "));
}

#[test]
fn mounts_hide_defaults_and_never_each_other() {
    let mut asked = SpecRequest::new();
    asked
        .mount(plain("/a/b/c"), Propagation::Private)
        .mount(plain("/a"), Propagation::Private)
        .mount(plain("/etc/./hostname"), Propagation::Private)
        .mount(plain("/sys/fs/cgroup/"), Propagation::Private);
    let spec = asked.build().unwrap();
    let place = |path: &str| {
        let found = |mount: &rubelet_oci::Mount| mount.destination == Path::new(path);
        spec.mounts.iter().position(found).unwrap()
    };
    assert!(place("/a") < place("/a/b/c"));
    assert_eq!(at(&spec, "/etc/hostname").source, Path::new("/srv/data"));
    assert_eq!(at(&spec, "/sys/fs/cgroup").kind, "bind");
    let mut own_dev = SpecRequest::new();
    own_dev.mount(plain("/dev"), Propagation::Private);
    let spec = own_dev.build().unwrap();
    let pts = |mount: &rubelet_oci::Mount| mount.destination.ends_with("pts");
    assert!(!spec.mounts.iter().any(pts));
    assert_eq!(at(&spec, "/dev").source, Path::new("/srv/data"));
}

#[test]
fn propagation_needs_a_mount_of_the_host_that_spreads() {
    let with = |wanted: v1::MountPropagation, host: Propagation| {
        let mut asked = SpecRequest::new();
        let mount = v1::Mount {
            propagation: wanted.into(),
            ..plain("/m")
        };
        asked.mount(mount, host).build().map(|spec| {
            let options = at(&spec, "/m").options.join(",");
            (options, spec.linux.rootfs_propagation)
        })
    };
    use v1::MountPropagation as Wanted;
    let text = |options: &str, root: &str| Ok((options.to_owned(), root.to_owned()));
    assert_eq!(
        with(Wanted::PropagationPrivate, Propagation::Private),
        text("rbind,rprivate,rw", "")
    );
    assert_eq!(
        with(Wanted::PropagationHostToContainer, Propagation::Slave),
        text("rbind,rslave,rw", "rslave")
    );
    assert_eq!(
        with(Wanted::PropagationBidirectional, Propagation::Shared),
        text("rbind,rshared,rw", "rshared")
    );
    assert!(with(Wanted::PropagationHostToContainer, Propagation::Private).is_err());
    assert!(with(Wanted::PropagationBidirectional, Propagation::Slave).is_err());
}

#[test]
fn read_only_is_recursive_only_where_that_can_be_kept() {
    let with = |readonly, recursive, host: fn(&mut HostFacts)| {
        let mut asked = SpecRequest::new();
        host(&mut asked.host);
        let mount = v1::Mount {
            readonly,
            recursive_read_only: recursive,
            ..plain("/m")
        };
        asked.mount(mount, Propagation::Private);
        asked.build().map(|spec| at(&spec, "/m").options[2].clone())
    };
    assert_eq!(with(true, false, |_| ()).as_deref(), Ok("ro"));
    assert_eq!(with(true, true, |_| ()).as_deref(), Ok("rro"));
    assert!(with(false, true, |_| ()).is_err());
    assert!(with(true, true, |host| host.recursive_read_only = false).is_err());
}

fn image(container_path: &str) -> v1::Mount {
    v1::Mount {
        container_path: container_path.into(),
        readonly: true,
        image: Some(v1::ImageSpec {
            image: "sha256:1".into(),
            user_specified_image: "example.com/tools:1".into(),
            ..Default::default()
        }),
        ..Default::default()
    }
}

#[test]
fn an_image_is_mounted_as_its_layers_for_reading_only() {
    let mut asked = SpecRequest::new();
    let part = v1::Mount {
        image_sub_path: "usr/share".into(),
        mount_options: vec!["noexec".into()],
        ..image("/share/")
    };
    asked.mount(image("/tools"), Propagation::Private);
    let spec = asked.mount(part, Propagation::Private).build().unwrap();
    let whole = at(&spec, "/tools");
    assert!(whole.is_layers());
    assert_eq!(whole.source, Path::new("example.com/tools:1"));
    let layers = ["lowerdir+=/layers/2/fs", "lowerdir+=/layers/1/fs"];
    assert_eq!(whole.options[..2], ["ro", "nodev"]);
    assert_eq!(whole.options[2..], layers);
    let part = at(&spec, "/share");
    assert_eq!(part.options[2], "noexec");
    assert_eq!(part.options[3..5], layers);
    assert_eq!(part.options[5], "x-rubelet.sub-path=usr/share");
}

#[test]
fn mounts_that_can_not_be_made_are_refused() {
    let refused = |mount: v1::Mount| {
        let mut asked = SpecRequest::new();
        asked.mount(mount, Propagation::Private).refused()
    };
    assert!(refused(plain("relative")).contains("not an absolute path"));
    assert!(refused(plain("/a/..")).contains("the root itself"));
    let both = v1::Mount {
        image: Some(v1::ImageSpec::default()),
        ..plain("/m")
    };
    assert!(refused(both).contains("mounts[0].host_path: it must be empty"));
    let writable = v1::Mount {
        readonly: false,
        ..image("/m")
    };
    assert!(refused(writable).contains("can only be mounted read-only"));
    let spreading = v1::Mount {
        propagation: v1::MountPropagation::PropagationBidirectional.into(),
        ..image("/m")
    };
    assert!(refused(spreading).contains("mounts[0].propagation"));
    let imageless = v1::Mount {
        image_sub_path: "etc".into(),
        ..plain("/m")
    };
    assert!(refused(imageless).contains("only supported for image mounts"));
    let options = v1::Mount {
        mount_options: vec!["noexec".into(), "suid".into()],
        ..plain("/m")
    };
    assert!(refused(options).contains("\"suid\""));
    let nameless = v1::Mount {
        host_path: String::new(),
        ..plain("/m")
    };
    assert!(refused(nameless).contains("host_path"));
}

#[test]
fn a_privileged_container_has_everything_and_its_pod_must_allow_it() {
    let mut asked = SpecRequest::new();
    let security = asked.security();
    security.privileged = true;
    security.masked_paths = vec!["/proc/kcore".into()];
    security.seccomp = Some(v1::SecurityProfile::default());
    assert!(asked.refused().contains("no privileged container allowed"));
    asked.pod_security().privileged = true;
    let device = |path: &str, minor| HostDevice {
        path: path.into(),
        kind: DeviceKind::Char,
        major: 10,
        minor,
        mode: 0o20660,
        uid: 0,
        gid: 5,
    };
    asked.host_devices = vec![device("/dev/fuse", 229), device("/dev/null", 3)];
    let spec = asked.build().unwrap();
    assert!(spec.linux.masked_paths.is_empty() && spec.linux.seccomp.is_none());
    assert!(at(&spec, "/sys").has("rw") && at(&spec, "/sys/fs/cgroup").has("rw"));
    assert!(spec.linux.namespace(NamespaceKind::Cgroup).is_none());
    assert_eq!(spec.linux.devices.len(), 1);
    assert_eq!(spec.linux.devices[0].file_mode, Some(0o660));
    let rules = &spec.linux.resources.as_ref().unwrap().devices;
    assert!(rules.len() == 1 && rules[0].allow && rules[0].kind == DeviceKind::All);
    let caps = spec.process.capabilities.unwrap().effective;
    assert!(caps.iter().any(|name| name == "CAP_SYS_ADMIN"));
}

#[test]
fn a_directory_of_devices_keeps_its_shape_and_each_gets_its_rule() {
    let mut asked = SpecRequest::new();
    asked.container.devices.push(v1::Device {
        container_path: "/dev/in".into(),
        host_path: "/dev/snd".into(),
        permissions: "rw".into(),
    });
    assert!(asked.refused().contains("no device found"));
    let device = |path: &str, minor| HostDevice {
        path: path.into(),
        kind: DeviceKind::Char,
        major: 116,
        minor,
        mode: 0o660,
        uid: 0,
        gid: 29,
    };
    asked.devices = vec![vec![device("/dev/snd/seq", 1), device("/dev/snd/x/y", 2)]];
    let spec = asked.build().unwrap();
    let paths: Vec<_> = spec.linux.devices.iter().map(|node| &node.path).collect();
    assert_eq!(paths, [Path::new("/dev/in/seq"), Path::new("/dev/in/x/y")]);
    let rules = &spec.linux.resources.as_ref().unwrap().devices;
    let last = rules.last().unwrap();
    assert_eq!(
        (last.major, last.minor, &*last.access),
        (Some(116), Some(2), "rw")
    );
    asked.container.devices[0].permissions = "rx".into();
    assert!(asked.refused().contains("permissions"));
}

#[test]
fn volumes_of_an_image_are_directories_of_the_runtime() {
    let mut asked = SpecRequest::new();
    asked.image_volumes = vec![ImageVolume {
        destination: "/data".into(),
        source: "/store/volumes/0".into(),
    }];
    for readonly in [false, true] {
        asked.security().readonly_rootfs = readonly;
        let spec = asked.build().unwrap();
        let data = at(&spec, "/data");
        assert_eq!(data.source, Path::new("/store/volumes/0"));
        assert_eq!(data.options, ["rbind", "rprivate", "rw", NO_SYMLINKS]);
        let mut for_other = spec;
        for_other.root.path = "/bundle/rootfs".into();
        for_other_runtime(&mut for_other);
        let data = at(&for_other, "/data");
        assert_eq!(data.source, Path::new("/store/volumes/0"));
        assert_eq!(data.options, ["rbind", "rprivate", "rw"]);
    }
    let spec = asked.build().unwrap();
    assert!(at(&spec, "/etc/hostname").has("ro") && at(&spec, "/dev/shm").has("rw"));
    asked.mount(plain("/data"), Propagation::Private);
    assert!(!at(&asked.build().unwrap(), "/data").has(NO_SYMLINKS));
}

#[test]
fn a_user_namespace_is_the_pods_and_maps_its_mounts() {
    let range = || {
        vec![v1::IdMapping {
            host_id: 65536,
            container_id: 0,
            length: 65536,
        }]
    };
    let options = v1::NamespaceOption {
        userns_options: Some(v1::UserNamespace {
            mode: v1::NamespaceMode::Pod.into(),
            uids: range(),
            gids: range(),
        }),
        ..Default::default()
    };
    let mut asked = SpecRequest::new();
    asked.namespaces.user = NamespacePlacement::Join("/run/user".into());
    asked.security().namespace_options = Some(options.clone());
    assert!(asked.refused().contains("must be that of its sandbox"));
    asked.pod_security().namespace_options = Some(options);
    let mount = v1::Mount {
        uid_mappings: range(),
        gid_mappings: range(),
        ..plain("/m")
    };
    asked.mount(mount, Propagation::Private);
    let spec = asked.build().unwrap();
    assert_eq!(spec.linux.uid_mappings[0].host_id, 65536);
    assert!(at(&spec, "/m").has("idmap") && at(&spec, "/m").uid_mappings[0].size == 65536);
    assert_eq!(at(&spec, "/sys").kind, "sysfs");
    asked.namespaces.network = NamespacePlacement::Host;
    assert_eq!(at(&asked.build().unwrap(), "/sys").kind, "bind");
    asked.host.idmapped_mounts = false;
    assert!(asked.refused().contains("uid_mappings"));
}

#[test]
fn profiles_and_limits_arrive_in_the_specification() {
    let mut asked = SpecRequest::new();
    let security = asked.security();
    security.no_new_privs = true;
    security.masked_paths = vec!["/proc/kcore".into()];
    security.seccomp = Some(v1::SecurityProfile::default());
    let linux = asked.container.linux.as_mut().unwrap();
    let resources = linux.resources.as_mut().unwrap();
    resources.cpu_shares = 100;
    resources.oom_score_adj = 900;
    let spec = asked.build().unwrap();
    assert!(spec.process.no_new_privileges);
    assert_eq!(spec.linux.masked_paths, ["/proc/kcore"]);
    assert_eq!(spec.process.oom_score_adj, Some(900));
    assert_eq!(spec.linux.resources.unwrap().cpu.unwrap().shares, Some(100));
    let filter = spec.linux.seccomp.unwrap();
    assert_eq!(filter.default_action, rubelet_oci::Action::Errno);
    asked.security().seccomp = Some(v1::SecurityProfile {
        profile_type: v1::security_profile::ProfileType::Localhost.into(),
        localhost_ref: "/profiles/mine.json".into(),
    });
    assert!(asked.refused().contains("/profiles/mine.json"));
    asked.profile = Some(r#"{"defaultAction": "SCMP_ACT_LOG"}"#);
    let filter = asked.build().unwrap().linux.seccomp.unwrap();
    assert_eq!(filter.default_action, rubelet_oci::Action::Log);
}

#[test]
fn a_working_directory_that_is_not_absolute_is_refused() {
    let mut relative = SpecRequest::new();
    relative.container.working_dir = "work".into();
    assert!(relative.refused().starts_with("working_dir"));
}
