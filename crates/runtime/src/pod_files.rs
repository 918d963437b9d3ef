//! The files that all containers of a pod share: `hostname`, `hosts` and `resolv.conf`.

use std::{fs, io::Write, os::unix::fs::OpenOptionsExt, path::Path};

use rubelet_runtime_plan::sandbox_spec::SandboxPlan;

use crate::{
    error::{Result, RuntimeError},
    layout::{SandboxDir, private_dir},
};

/// Largest `resolv.conf` that is copied.
const MAX_FILE_SIZE: u64 = 1 << 20;

/// Creates the sandbox's run directory with its files. Blocks.
pub(crate) fn write(dir: &SandboxDir, plan: &SandboxPlan) -> Result<()> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |error: std::io::Error| {
            RuntimeError::because(format!("cannot create {}", path.display()), &error)
        }
    };
    private_dir(&dir.containers()).map_err(failed(&dir.containers()))?;
    put(&dir.hostname(), plan.hostname_file.as_bytes()).map_err(failed(&dir.hostname()))?;
    let resolv_conf = match &plan.resolv_conf {
        Some(text) => text.clone().into_bytes(),
        None => host_file(Path::new("/etc/resolv.conf")),
    };
    put(&dir.resolv_conf(), &resolv_conf).map_err(failed(&dir.resolv_conf()))?;
    let hosts = host_file(Path::new("/etc/hosts"));
    put(&dir.hosts(), &hosts).map_err(failed(&dir.hosts()))
}

/// A file of the host that is copied into a pod; empty if the host has none.
fn host_file(path: &Path) -> Vec<u8> {
    let regular = fs::metadata(path)
        .is_ok_and(|metadata| metadata.is_file() && metadata.len() <= MAX_FILE_SIZE);
    if regular {
        fs::read(path).unwrap_or_default()
    } else {
        Vec::new()
    }
}

/// World-readable: all users of a container read these files.
fn put(path: &Path, content: &[u8]) -> std::io::Result<()> {
    let mut file = fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o644)
        .open(path)?;
    file.write_all(content)
}
