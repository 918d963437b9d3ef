//! The container's `/dev`: a tmpfs with its devices, created before the container's init. Because
//! the host's root creates it outside of the container's cgroup, it works for user namespaces,
//! where mknod(2) is forbidden, and the cgroup's device rules do not apply.

use std::{
    io,
    os::fd::{AsFd, OwnedFd},
    path::{Component, Path},
};

use rubelet_oci::{Device, DeviceKind, Mount, Spec};
use rustix::{
    fs::{
        AtFlags, Dev, FileType, Gid, Mode, Uid, chmodat, chownat, makedev, mkdirat, mknodat,
        symlinkat,
    },
    io::Errno,
};

use crate::{
    filesystem::Filesystem,
    ids::HostIds,
    mount_options::MountOptions,
    step::{Step, StepError},
};

/// Devices of every container: name, major and minor number.
const DEFAULT: [(&str, u32, u32); 6] = [
    ("null", 1, 3),
    ("zero", 1, 5),
    ("full", 1, 7),
    ("random", 1, 8),
    ("urandom", 1, 9),
    ("tty", 5, 0),
];

/// Symbolic links of every container: name and target.
const LINKS: [(&str, &str); 6] = [
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
    ("core", "/proc/kcore"),
    ("ptmx", "pts/ptmx"),
];

/// Reports whether a mount is the `/dev` that [`make`] creates.
pub(crate) fn is_dev(mount: &Mount) -> bool {
    mount.destination == Path::new("/dev") && mount.kind == "tmpfs"
}

/// Creates the tmpfs as a detached mount.
pub(crate) fn make(
    options: &MountOptions<'_>,
    spec: &Spec,
    ids: &HostIds<'_>,
) -> Result<OwnedFd, StepError> {
    let fs = Filesystem::open("tmpfs")?;
    // The source that `df` shows; any value works.
    let _ = fs.set("source", "tmpfs");
    for option in &options.data {
        fs.option(option)?;
    }
    let label = &spec.linux.mount_label;
    if !label.is_empty() {
        fs.option(&format!("context={label}"))?;
    }
    let dev = fs.mount(options.attr.set)?;
    let (root, root_group) = (ids.uid(0), ids.gid(0));
    let owned = |path: &str, uid: Option<Uid>, gid: Option<Gid>| {
        let flags = AtFlags::SYMLINK_NOFOLLOW;
        if path.is_empty() {
            return chownat(&dev, path, uid, gid, AtFlags::EMPTY_PATH);
        }
        chownat(&dev, path, uid, gid, flags)
    };
    let own_root = |path: &str| {
        owned(path, root, root_group).step(|| format!("cannot change the owner of /dev/{path}"))
    };
    if ids.uid(0) != Some(Uid::ROOT) {
        own_root("")?;
    }
    for (name, major, minor) in DEFAULT {
        node(
            &dev,
            Path::new(name),
            FileType::CharacterDevice,
            0o666,
            makedev(major, minor),
        )
        .and_then(|()| exact_mode(&dev, Path::new(name), 0o666))
        .step(|| format!("cannot create the device /dev/{name}"))?;
        own_root(name)?;
    }
    for (name, target) in LINKS {
        symlinkat(target, &dev, name)
            .step(|| format!("cannot create the symbolic link /dev/{name}"))?;
        own_root(name)?;
    }
    for device in inside(spec) {
        let name = name(device)?;
        let what = || format!("cannot create the device {}", device.path.display());
        make_parents(&dev, name).step(what)?;
        match make_node(&dev, name, device) {
            Ok(()) => exact_mode(&dev, name, mode(device)).step(what)?,
            // One of the default devices.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
            other => other.step(what)?,
        }
        let uid = ids.uid(device.uid.unwrap_or(0)).or(root);
        let gid = ids.gid(device.gid.unwrap_or(0)).or(root_group);
        chownat(&dev, name, uid, gid, AtFlags::SYMLINK_NOFOLLOW).step(what)?;
    }
    Ok(dev)
}

/// Devices of a container that are below `/dev`.
pub(crate) fn inside(spec: &Spec) -> impl Iterator<Item = &Device> {
    let devices = spec.linux.devices.iter();
    devices.filter(|device| device.path.starts_with("/dev"))
}

/// Creates a device node below a directory. The umask applies: in a directory that others can write
/// to, a later chmod could hit another file.
pub(crate) fn make_node(dir: impl AsFd, path: &Path, device: &Device) -> io::Result<()> {
    let kind = match device.kind {
        DeviceKind::Char => FileType::CharacterDevice,
        DeviceKind::Block => FileType::BlockDevice,
        DeviceKind::Fifo => FileType::Fifo,
        DeviceKind::All => return Err(io::ErrorKind::InvalidInput.into()),
    };
    let number = |number: i64| u32::try_from(number).map_err(io::Error::other);
    let (major, minor) = match kind {
        FileType::Fifo => (0, 0),
        _ => (number(device.major)?, number(device.minor)?),
    };
    Ok(node(dir, path, kind, mode(device), makedev(major, minor))?)
}

fn mode(device: &Device) -> u32 {
    device.file_mode.unwrap_or(0o666)
}

fn node(dir: impl AsFd, path: &Path, kind: FileType, mode: u32, dev: Dev) -> Result<(), Errno> {
    mknodat(&dir, path, kind, Mode::from_raw_mode(mode & 0o7777), dev)
}

/// Sets the mode of a node regardless of the umask. Only for a directory that no other process can
/// change, because chmod follows symbolic links.
fn exact_mode(dir: impl AsFd, path: &Path, mode: u32) -> Result<(), Errno> {
    chmodat(
        dir,
        path,
        Mode::from_raw_mode(mode & 0o7777),
        AtFlags::empty(),
    )
}

fn name(device: &Device) -> Result<&Path, StepError> {
    let plain = |path: &&Path| {
        let mut parts = path.components().peekable();
        parts.peek().is_some() && parts.all(|part| matches!(part, Component::Normal(_)))
    };
    let name = device.path.strip_prefix("/dev").ok().filter(plain);
    name.ok_or_else(|| {
        StepError(format!(
            "{} is not a valid device path",
            device.path.display()
        ))
    })
}

fn make_parents(dev: &OwnedFd, name: &Path) -> io::Result<()> {
    let mut above: Vec<&Path> = name.ancestors().skip(1).collect();
    above.retain(|path| !path.as_os_str().is_empty());
    for dir in above.into_iter().rev() {
        match mkdirat(dev, dir, Mode::from_raw_mode(0o755)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}
