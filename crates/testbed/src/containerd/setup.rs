//! The files that a private containerd needs at its start.

use std::os::unix::fs::symlink;
use std::path::Path;

use anyhow::{Context, Result};
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};

use super::config;
use crate::cgroup_driver::CgroupDriver;
use crate::packages::CNI_PLUGINS;
use crate::scratch::Scratch;

use super::HostPorts;

/// The CNI plugins that the private network uses.
pub(crate) const PLUGINS: [&str; 4] = ["bridge", "host-local", "loopback", "portmap"];

/// Writes the configuration of containerd and of the network.
pub(super) fn write_files(scratch: &Scratch, major: u32, host_ports: HostPorts) -> Result<()> {
    write_network(scratch, host_ports)?;
    let layout = config::Layout {
        dir: scratch.dir(),
        snapshotter: if overlays(scratch)? {
            "overlayfs"
        } else {
            "native"
        },
        systemd_cgroup: CgroupDriver::wanted()? == CgroupDriver::Systemd,
    };
    std::fs::write(
        scratch.dir().join(config::FILE),
        config::main_file(layout, major),
    )?;
    Ok(())
}

/// Writes the configuration of the network into `cni/conf`, and links its plugins into `cni/bin`.
pub(crate) fn write_network(scratch: &Scratch, host_ports: HostPorts) -> Result<()> {
    let plugins = scratch.subdir("cni/bin")?;
    for name in PLUGINS {
        symlink(Path::new(CNI_PLUGINS).join(name), plugins.join(name))
            .with_context(|| format!("cannot link the CNI plugin {name}"))?;
    }
    let network = serde_json::to_string_pretty(&config::network(scratch, host_ports))?;
    std::fs::write(
        scratch.subdir("cni/conf")?.join("10-rubelet.conflist"),
        network,
    )?;
    Ok(())
}

/// Whether an overlay can be mounted on the instance's file system. To copy files works everywhere.
pub(crate) fn overlays(scratch: &Scratch) -> Result<bool> {
    let [lower, upper, work, merged] = ["probe/lower", "probe/upper", "probe/work", "probe/merged"]
        .map(|name| scratch.subdir(name).map(|path| path.display().to_string()));
    let (lower, upper, work, merged) = (lower?, upper?, work?, merged?);
    let options = format!("lowerdir={lower},upperdir={upper},workdir={work}\0");
    let options = std::ffi::CStr::from_bytes_with_nul(options.as_bytes())?;
    let works = mount("overlay", &merged, "overlay", MountFlags::empty(), options).is_ok();
    if works {
        unmount(&merged, UnmountFlags::empty())
            .with_context(|| format!("cannot unmount {merged}"))?;
    }
    std::fs::remove_dir_all(scratch.dir().join("probe"))?;
    Ok(works)
}
