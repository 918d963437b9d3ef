//! The configuration files of one private CRI-O.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use anyhow::{Context, Result};

use crate::daemon::SOCKET;
use crate::images::PAUSE;
use crate::packages::RUNC;
use crate::scratch::{MARKER, Scratch};

/// The name of the main file.
pub(super) const FILE: &str = "crio.conf";

/// Nothing is signed here.
const POLICY: &str = r#"{ "default": [{ "type": "insecureAcceptAnything" }] }"#;
const POLICY_FILE: &str = "policy.json";

/// Layers of images on their way into the store. CRI-O does not create it.
const TEMPORARY: &str = "temp";

/// The driver of the store of images: one that works on any file system.
pub(super) const STORAGE_DRIVER: &str = "vfs";

/// Runs runc without limits of huge pages. CRI-O takes the controller for mounted where the kernel has it, and unlike
/// containerd has no option to do without.
const RUNC_FILE: &str = "runc-without-huge-pages";
/// Where the controller is mounted.
const HUGE_PAGES: &str = "/sys/fs/cgroup/hugetlb";

/// Writes them.
pub(super) fn write(scratch: &Scratch, programs: &Path) -> Result<()> {
    scratch.subdir(TEMPORARY)?;
    for (name, text, mode) in [
        (FILE, main_file(scratch, programs), 0o644),
        (POLICY_FILE, POLICY.to_owned(), 0o644),
        (RUNC_FILE, runc_without_huge_pages(), 0o755),
    ] {
        let path = scratch.dir().join(name);
        std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
        std::fs::set_permissions(&path, Permissions::from_mode(mode))?;
    }
    Ok(())
}

/// A script with the arguments of runc.
fn runc_without_huge_pages() -> String {
    format!(
        r#"#!/bin/sh
previous=
for word; do
    [ "$previous" != --bundle ] || sed -i -z 's/"hugepageLimits":\s*\[[^]]*\]/"hugepageLimits":[]/' "$word/config.json"
    previous=$word
done
exec {RUNC} "$@"
"#
    )
}

fn main_file(scratch: &Scratch, programs: &Path) -> String {
    let (dir, tag) = (scratch.dir().display(), scratch.tag());
    let programs = programs.display();
    let runc = match Path::new("/sys/fs/cgroup/cgroup.controllers").exists()
        || Path::new(HUGE_PAGES).exists()
    {
        true => RUNC.to_owned(),
        false => format!("{dir}/{RUNC_FILE}"),
    };
    format!(
        "[crio]
root = '{dir}/root'
runroot = '{dir}/state'
storage_driver = '{STORAGE_DRIVER}'
log_dir = '{dir}/logs'
version_file = '{dir}/version'
version_file_persist = ''
clean_shutdown_file = '{dir}/clean'
internal_wipe = false
[crio.api]
listen = '{dir}/{SOCKET}'
stream_address = '127.0.0.1'
stream_port = '0'
[crio.runtime]
cgroup_manager = 'cgroupfs'
default_runtime = 'runc'
namespaces_dir = '{dir}/ns'
pinns_path = '{programs}/pinns'
container_exits_dir = '{dir}/exits'
container_attach_socket_dir = '{dir}/a'
apparmor_profile = 'unconfined'
irqbalance_config_file = ''
irqbalance_config_restore_file = 'disable'
hooks_dir = []
disable_hostport_mapping = true
enable_pod_events = true
[crio.runtime.runtimes.runc]
runtime_path = '{runc}'
runtime_type = 'oci'
runtime_root = '{dir}/runc'
monitor_path = '{programs}/conmon'
monitor_cgroup = 'pod'
monitor_env = ['PATH=/usr/sbin:/usr/bin:/sbin:/bin', '{MARKER}={tag}']
[crio.image]
pause_image = '{PAUSE}'
pause_command = ''
signature_policy = '{dir}/{POLICY_FILE}'
signature_policy_dir = '{dir}/policies'
big_files_temporary_dir = '{dir}/{TEMPORARY}'
[crio.network]
network_dir = '{dir}/cni/conf'
plugin_dirs = ['{dir}/cni/bin']
[crio.metrics]
enable_metrics = false
[crio.nri]
enable_nri = false
"
    )
}
