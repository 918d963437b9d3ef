//! Device nodes and the rules of the devices cgroup.

use std::path::{Path, PathBuf};

use rubelet_cri::v1;
use rubelet_oci::{Device, DeviceKind, DeviceRule};

use super::{HostDevice, SpecInput};
use crate::Refusal;

/// Devices that every container may use, by kind, major and minor number (`None` is any): `null`,
/// `zero`, `full`, `random`, `urandom`, `tty`, `ptmx`, pseudo terminals.
const ALWAYS: [(i64, Option<i64>); 8] = [
    (1, Some(3)),
    (1, Some(5)),
    (1, Some(7)),
    (1, Some(8)),
    (1, Some(9)),
    (5, Some(0)),
    (5, Some(2)),
    (136, None),
];

/// Nodes that every container has in any case, or that belong to the container's own terminals.
const MADE_ANYWAY: [&str; 8] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
    "/dev/ptmx",
    "/dev/console",
];

/// The nodes to create and the rules, in order: first everything except mknod is denied, then the
/// devices that the container may use are allowed.
pub(super) fn devices(
    input: &SpecInput<'_>,
    security: &v1::LinuxContainerSecurityContext,
) -> Result<(Vec<Device>, Vec<DeviceRule>), Refusal> {
    let mut nodes = Vec::new();
    let mut rules = vec![rule(false, DeviceKind::All, None, None, "rwm")];
    for kind in [DeviceKind::Char, DeviceKind::Block] {
        rules.push(rule(true, kind, None, None, "m"));
    }
    for (major, minor) in ALWAYS {
        rules.push(rule(true, DeviceKind::Char, Some(major), minor, "rwm"));
    }
    if security.privileged {
        for device in input.host_devices {
            add(&mut nodes, device, device.path.clone());
        }
        rules = vec![rule(true, DeviceKind::All, None, None, "rwm")];
    }
    for (index, wanted) in input.container.devices.iter().enumerate() {
        let refuse =
            |part: &str, message: String| Refusal::new(format!("devices[{index}].{part}"), message);
        let found = input.devices.get(index).map_or(&[][..], Vec::as_slice);
        if found.is_empty() {
            return Err(refuse(
                "host_path",
                format!("no device found at {:?}", wanted.host_path),
            ));
        }
        let access = &wanted.permissions;
        if access.is_empty() || access.chars().any(|letter| !"rwm".contains(letter)) {
            return Err(refuse(
                "permissions",
                format!("{access:?} may only contain the letters r, w and m"),
            ));
        }
        if !wanted.container_path.starts_with('/') {
            return Err(refuse(
                "container_path",
                format!("{:?} is not an absolute path", wanted.container_path),
            ));
        }
        for device in found {
            add(&mut nodes, device, inside(wanted, device));
            if !security.privileged {
                rules.push(rule(
                    true,
                    device.kind,
                    Some(device.major.into()),
                    Some(device.minor.into()),
                    access,
                ));
            }
        }
    }
    Ok((nodes, rules))
}

/// A later node replaces an earlier one at the same path.
fn add(nodes: &mut Vec<Device>, device: &HostDevice, path: PathBuf) {
    if MADE_ANYWAY.iter().any(|made| Path::new(made) == path)
        || path.starts_with("/dev/pts")
        || path.starts_with("/dev/shm")
        || path.starts_with("/dev/mqueue")
    {
        return;
    }
    nodes.retain(|node| node.path != path);
    nodes.push(Device {
        path,
        kind: device.kind,
        major: device.major.into(),
        minor: device.minor.into(),
        file_mode: Some(device.mode & 0o7777),
        uid: Some(device.uid),
        gid: Some(device.gid),
    });
}

/// A directory keeps its structure inside the container.
fn inside(wanted: &v1::Device, device: &HostDevice) -> PathBuf {
    let top = Path::new(&wanted.container_path);
    match device.path.strip_prefix(&wanted.host_path) {
        Ok(rest) if !rest.as_os_str().is_empty() => top.join(rest),
        _ => top.to_owned(),
    }
}

fn rule(
    allow: bool,
    kind: DeviceKind,
    major: Option<i64>,
    minor: Option<i64>,
    access: &str,
) -> DeviceRule {
    DeviceRule {
        allow,
        kind,
        major,
        minor,
        access: access.to_owned(),
    }
}
