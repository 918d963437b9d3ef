//! Mounts that the caller requests.

use std::path::Path;

use rubelet_cri::v1;
use rubelet_oci::{IdMapping, Mount};

use super::{Propagation, SpecInput, clean, image};
use crate::{Refusal, container_spec::MountSource, userns};

/// Options that a caller may add to a mount.
const MOUNT_OPTIONS: [&str; 3] = ["noexec", "nodev", "nosuid"];

/// The mount and its propagation.
pub(super) fn requested_mount(
    input: &SpecInput<'_>,
    index: usize,
    mount: &v1::Mount,
) -> Result<(Mount, Propagation), Refusal> {
    let refuse =
        |part: &str, message: String| Refusal::new(format!("mounts[{index}]{part}"), message);
    if let Some(option) = mount
        .mount_options
        .iter()
        .find(|option| !MOUNT_OPTIONS.contains(&option.as_str()))
    {
        return Err(refuse(
            ".mount_options",
            format!("the option {option:?} is not supported; noexec, nodev and nosuid are"),
        ));
    }
    let destination = Path::new(&mount.container_path);
    if !destination.is_absolute() {
        return Err(refuse(
            ".container_path",
            format!("{:?} is not an absolute path", mount.container_path),
        ));
    }
    let destination = clean(destination);
    if destination == Path::new("/") {
        return Err(refuse(
            ".container_path",
            "the root itself cannot be a mount".to_owned(),
        ));
    }
    if mount.image.is_some() || !mount.image_sub_path.is_empty() {
        let made = image::mount(input, index, mount, destination)?;
        return Ok((made, Propagation::Private));
    }
    if !mount.host_path.starts_with('/') {
        return Err(refuse(
            ".host_path",
            format!("{:?} is not an absolute path", mount.host_path),
        ));
    }
    let Some(source) = input.sources.get(index) else {
        return Err(refuse(
            ".host_path",
            format!("{:?} was not looked up", mount.host_path),
        ));
    };
    let propagation = propagation(mount, source, &refuse)?;
    let mut options = vec!["rbind"];
    options.push(match propagation {
        Propagation::Private => "rprivate",
        Propagation::Slave => "rslave",
        Propagation::Shared => "rshared",
    });
    options.push(access(input, mount, propagation, &refuse)?);
    options.extend(mount.mount_options.iter().map(String::as_str));
    let uid_mappings = mapped(&mount.uid_mappings);
    let gid_mappings = mapped(&mount.gid_mappings);
    if uid_mappings.is_empty() != gid_mappings.is_empty() {
        return Err(refuse(
            ".uid_mappings",
            "users and groups must both be mapped, or neither".to_owned(),
        ));
    }
    if !uid_mappings.is_empty() {
        if !input.host.idmapped_mounts {
            return Err(refuse(
                ".uid_mappings",
                "the host's kernel cannot map the IDs of mounts; Linux 5.12 or newer can"
                    .to_owned(),
            ));
        }
        options.push("idmap");
    }
    Ok((
        Mount {
            destination,
            kind: "bind".to_owned(),
            source: source.path.clone(),
            options: options.into_iter().map(str::to_owned).collect(),
            uid_mappings,
            gid_mappings,
        },
        propagation,
    ))
}

/// The propagation of the mount, which the host's mount must support.
fn propagation(
    mount: &v1::Mount,
    source: &MountSource,
    refuse: &impl Fn(&str, String) -> Refusal,
) -> Result<Propagation, Refusal> {
    let field = ".propagation";
    let not = |kind: &str| {
        Err(refuse(
            field,
            format!(
                "path {:?} is mounted on {:?} but it is not a {kind} mount",
                source.path, source.mount_point
            ),
        ))
    };
    match v1::MountPropagation::try_from(mount.propagation) {
        Ok(v1::MountPropagation::PropagationPrivate) => Ok(Propagation::Private),
        Ok(v1::MountPropagation::PropagationHostToContainer) => match source.propagation {
            Propagation::Private => not("shared or slave"),
            Propagation::Shared | Propagation::Slave => Ok(Propagation::Slave),
        },
        Ok(v1::MountPropagation::PropagationBidirectional) => match source.propagation {
            Propagation::Private | Propagation::Slave => not("shared"),
            Propagation::Shared => Ok(Propagation::Shared),
        },
        Err(_) => Err(refuse(
            field,
            format!("unknown propagation {}", mount.propagation),
        )),
    }
}

fn access(
    input: &SpecInput<'_>,
    mount: &v1::Mount,
    propagation: Propagation,
    refuse: &impl Fn(&str, String) -> Refusal,
) -> Result<&'static str, Refusal> {
    let field = ".recursive_read_only";
    match (mount.recursive_read_only, mount.readonly) {
        (false, false) => Ok("rw"),
        (false, true) => Ok("ro"),
        (true, false) => Err(refuse(
            field,
            format!(
                "recursive read-only mount conflicts with RW mount (hostPath={:?})",
                mount.host_path
            ),
        )),
        (true, true) if !input.host.recursive_read_only => Err(refuse(
            field,
            format!(
                "runtime handler does not support recursive read-only mounts (hostPath={:?}): Linux 5.12 or newer is needed",
                mount.host_path
            ),
        )),
        (true, true) if propagation != Propagation::Private => Err(refuse(
            field,
            format!(
                "recursive read-only mount needs private propagation (hostPath={:?})",
                mount.host_path
            ),
        )),
        (true, true) => Ok("rro"),
    }
}

fn mapped(mappings: &[v1::IdMapping]) -> Vec<IdMapping> {
    mappings.iter().map(userns::convert).collect()
}
