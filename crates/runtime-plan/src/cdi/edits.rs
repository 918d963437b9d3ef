//! Changes of a container's specification for its devices.

use std::path::{Path, PathBuf};

use rubelet_oci::{Device, DeviceKind, DeviceRule, LinuxResources, Mount, Spec};

use super::document::{ContainerEdits, DeviceNode};
use crate::Refusal;

/// The edits of a container's devices, in order, each with the name of its device or kind.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DeviceEdits {
    parts: Vec<(String, ContainerEdits)>,
}

/// A device node as it is on the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NodeOnHost {
    /// Its kind.
    pub kind: DeviceKind,
    /// Major number.
    pub major: i64,
    /// Minor number.
    pub minor: i64,
}

impl DeviceEdits {
    pub(super) fn add(&mut self, name: &str, edits: &ContainerEdits) {
        self.parts.push((name.to_owned(), edits.clone()));
    }

    /// The device nodes of the host that must be inspected before [`apply`], in its order: those
    /// whose numbers the files omit.
    #[must_use]
    pub fn nodes_to_inspect(&self) -> Vec<PathBuf> {
        let nodes = self.parts.iter().flat_map(|(_, edits)| &edits.device_nodes);
        nodes
            .filter(|node| !is_complete(node))
            .map(|node| on_host(node).to_owned())
            .collect()
    }
}

/// Reports whether the file describes a node completely.
fn is_complete(node: &DeviceNode) -> bool {
    !node.kind.is_empty() && (node.major != 0 || node.kind == "p")
}

fn on_host(node: &DeviceNode) -> &Path {
    node.host_path.as_ref().unwrap_or(&node.path)
}

/// Applies edits to a specification. `found` has the node at each of
/// [`DeviceEdits::nodes_to_inspect`].
///
/// # Errors
/// The devices need features that this runtime does not have.
pub fn apply(
    spec: &mut Spec,
    edits: &DeviceEdits,
    found: impl IntoIterator<Item = NodeOnHost>,
) -> Result<(), Refusal> {
    let mut found = found.into_iter();
    for (name, part) in &edits.parts {
        refuse_what_is_missing(name, part)?;
        for variable in &part.env {
            set(&mut spec.process.env, variable);
        }
        for node in &part.device_nodes {
            let known = match is_complete(node) {
                true => Some(NodeOnHost {
                    kind: kind_of(&node.kind),
                    major: node.major,
                    minor: node.minor,
                }),
                false => found.next(),
            };
            let known =
                known.filter(|known| node.kind.is_empty() || kind_of(&node.kind) == known.kind);
            let Some(known) = known else {
                let path = on_host(node).display();
                return Err(refusal(
                    name,
                    format!("{path} is not a device of type {:?}", node.kind),
                ));
            };
            add_node(spec, node, known);
        }
        for mount in &part.mounts {
            add_mount(spec, mount);
        }
        for gid in part.additional_gids.iter().filter(|gid| **gid != 0) {
            let groups = &mut spec.process.user.additional_gids;
            if !groups.contains(gid) {
                groups.push(*gid);
            }
        }
    }
    // Parents are mounted first, so that they hide nothing. The kernel's file systems come before.
    spec.mounts.sort_by_key(|mount| {
        let depth = mount.destination.components().count();
        (is_layered(mount), if is_layered(mount) { depth } else { 0 })
    });
    Ok(())
}

/// Reports whether a mount is not one of the kernel's: such mounts are ordered by depth.
fn is_layered(mount: &Mount) -> bool {
    mount.is_bind() || mount.is_layers()
}

fn refusal(name: &str, message: impl std::fmt::Display) -> Refusal {
    Refusal::new("cdi_devices", format!("the device {name:?}: {message}"))
}

fn refuse_what_is_missing(name: &str, edits: &ContainerEdits) -> Result<(), Refusal> {
    if let Some(hook) = edits.hooks.first() {
        return Err(refusal(
            name,
            format!(
                "its CDI specification has a hook ({} {}), and this runtime runs no hooks; use containerd for such pods",
                hook.hook_name,
                hook.path.display()
            ),
        ));
    }
    if edits.intel_rdt.is_some() {
        return Err(refusal(
            name,
            "its CDI specification has intelRdt, which this runtime does not set",
        ));
    }
    if !edits.net_devices.is_empty() {
        return Err(refusal(
            name,
            "its CDI specification has netDevices, which this runtime does not move",
        ));
    }
    Ok(())
}

fn kind_of(text: &str) -> DeviceKind {
    match text {
        "b" => DeviceKind::Block,
        "p" => DeviceKind::Fifo,
        _ => DeviceKind::Char,
    }
}

/// Later values win and keep the position of the earlier ones.
fn set(env: &mut Vec<String>, new: &str) {
    let name = |text: &str| text.split('=').next().unwrap_or_default().to_owned();
    match env.iter_mut().find(|old| name(old) == name(new)) {
        Some(old) => new.clone_into(old),
        None => env.push(new.to_owned()),
    }
}

fn add_node(spec: &mut Spec, node: &DeviceNode, known: NodeOnHost) {
    let NodeOnHost { kind, major, minor } = known;
    // A user other than root could not open a device of root.
    let user = &spec.process.user;
    let own = |id: u32| (id != 0).then_some(id);
    let device = Device {
        path: node.path.clone(),
        kind,
        major,
        minor,
        file_mode: node.file_mode,
        uid: node.uid.or(own(user.uid)),
        gid: node.gid.or(own(user.gid)),
    };
    let devices = &mut spec.linux.devices;
    devices.retain(|other| other.path != device.path);
    devices.push(device);
    if kind != DeviceKind::Fifo {
        let access = match node.permissions.as_str() {
            "" => "rwm",
            some => some,
        };
        let resources = spec
            .linux
            .resources
            .get_or_insert_with(LinuxResources::default);
        resources.devices.push(DeviceRule {
            allow: true,
            kind,
            major: Some(major),
            minor: Some(minor),
            access: access.to_owned(),
        });
    }
}

fn add_mount(spec: &mut Spec, mount: &super::document::Mount) {
    let mut made = Mount {
        destination: mount.container_path.clone(),
        kind: mount.kind.clone(),
        source: mount.host_path.clone(),
        options: mount.options.clone(),
        ..Mount::default()
    };
    if made.kind.is_empty() && !made.is_bind() {
        made.kind = "bind".to_owned();
    }
    spec.mounts
        .retain(|other| other.destination != made.destination);
    spec.mounts.push(made);
}
