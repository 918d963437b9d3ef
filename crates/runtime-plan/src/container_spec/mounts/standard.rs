//! Mounts that every container gets without a request: the kernel's file systems, the pod's files,
//! the image's volumes.

use rubelet_cri::v1;
use rubelet_oci::{Mount, NO_SYMLINKS};

use super::SpecInput;

/// `sysfs` can't be mounted by a user namespace that does not own the network namespace.
pub(super) fn of_kernel(privileged: bool, bind_sys: bool) -> Vec<Mount> {
    let mode = if privileged { "rw" } else { "ro" };
    let mount = |destination: &str, kind: &str, source: &str, options: &[&str]| Mount {
        destination: destination.into(),
        kind: kind.to_owned(),
        source: source.into(),
        options: options.iter().map(|one| (*one).to_owned()).collect(),
        ..Mount::default()
    };
    let sys = if bind_sys {
        let options = ["rbind", "rro", "nosuid", "nodev", "noexec"];
        mount("/sys", "bind", "/sys", &options)
    } else {
        let options = ["nosuid", "noexec", "nodev", mode];
        mount("/sys", "sysfs", "sysfs", &options)
    };
    vec![
        mount("/proc", "proc", "proc", &["nosuid", "noexec", "nodev"]),
        mount(
            "/dev",
            "tmpfs",
            "tmpfs",
            &["nosuid", "strictatime", "mode=755", "size=65536k"],
        ),
        mount(
            "/dev/pts",
            "devpts",
            "devpts",
            &[
                "nosuid",
                "noexec",
                "newinstance",
                "ptmxmode=0666",
                "mode=0620",
                "gid=5",
            ],
        ),
        mount(
            "/dev/mqueue",
            "mqueue",
            "mqueue",
            &["nosuid", "noexec", "nodev"],
        ),
        sys,
        mount(
            "/sys/fs/cgroup",
            "cgroup",
            "cgroup",
            &["nosuid", "noexec", "nodev", "relatime", mode],
        ),
    ]
}

/// Files of the pod. They need no ID mapping in a user namespace, since they are world-readable.
pub(super) fn of_pod<'a>(
    input: &'a SpecInput<'_>,
    security: &v1::LinuxContainerSecurityContext,
) -> impl Iterator<Item = Mount> + 'a {
    let mode = if security.readonly_rootfs { "ro" } else { "rw" };
    let files = &input.files;
    [
        ("/etc/hostname", Some(files.hostname), mode),
        ("/etc/hosts", files.hosts, mode),
        ("/etc/resolv.conf", Some(files.resolv_conf), mode),
        ("/dev/shm", Some(files.shm), "rw"),
    ]
    .into_iter()
    .filter_map(|(destination, source, mode)| {
        Some(Mount {
            destination: destination.into(),
            kind: "bind".to_owned(),
            source: source?.to_owned(),
            options: ["rbind", "rprivate", mode].map(str::to_owned).to_vec(),
            ..Mount::default()
        })
    })
}

/// The runtime's directories for the volumes that the image declares. Each was filled from the
/// image and is independent of the root file system.
pub(super) fn volumes_of_image<'a>(input: &SpecInput<'a>) -> impl Iterator<Item = Mount> + 'a {
    input.image_volumes.iter().map(|volume| Mount {
        destination: volume.destination.clone(),
        kind: "bind".to_owned(),
        source: volume.source.clone(),
        options: ["rbind", "rprivate", "rw", NO_SYMLINKS]
            .map(str::to_owned)
            .to_vec(),
        ..Mount::default()
    })
}
