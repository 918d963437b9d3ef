//! The configuration files of one private CRI-O.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use anyhow::{Context, Result};

use super::runc;
use crate::CgroupDriver;
use crate::daemon::SOCKET;
use crate::images::PAUSE;
use crate::scratch::{MARKER, Scratch};

/// The name of the main file.
pub(super) const FILE: &str = "crio.conf";
/// The name of the file about registries.
pub(super) const REGISTRIES_FILE: &str = "registries.conf";
/// The registries of the test bed speak HTTP.
const REGISTRIES: &str = "[[registry]]\nlocation = '127.0.0.1'\ninsecure = true\n";

/// Nothing is signed here.
const POLICY: &str = r#"{ "default": [{ "type": "insecureAcceptAnything" }] }"#;
const POLICY_FILE: &str = "policy.json";

/// Layers of images on their way into the store. CRI-O does not create it.
const TEMPORARY: &str = "temp";

/// Writes them, for a store of images with this driver.
pub(super) fn write(scratch: &Scratch, programs: &Path, driver: &str) -> Result<()> {
    scratch.subdir(TEMPORARY)?;
    for (name, text, mode) in [
        (FILE, main_file(scratch, programs, driver)?, 0o644),
        (REGISTRIES_FILE, REGISTRIES.to_owned(), 0o644),
        (POLICY_FILE, POLICY.to_owned(), 0o644),
        (runc::FILE, runc::script(), 0o755),
    ] {
        let path = scratch.dir().join(name);
        std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
        std::fs::set_permissions(&path, Permissions::from_mode(mode))?;
    }
    Ok(())
}

fn main_file(scratch: &Scratch, programs: &Path, driver: &str) -> Result<String> {
    let (dir, tag) = (scratch.dir().display(), scratch.tag());
    let manager = CgroupDriver::wanted()?.name();
    let programs = programs.display();
    let runc = runc::FILE;
    Ok(format!(
        "[crio]
root = '{dir}/root'
runroot = '{dir}/state'
storage_driver = '{driver}'
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
cgroup_manager = '{manager}'
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
runtime_path = '{dir}/{runc}'
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
    ))
}
