//! The small files that all containers of a pod see: names and resolvers.

use std::{fs, io::Write, os::unix::fs::OpenOptionsExt, path::Path};

use rubelet_runtime_plan::sandbox_spec::SandboxPlan;

use crate::{
    fault::{Fault, Outcome},
    layout::{SandboxDir, private_dir},
};

/// A resolver's configuration that is longer than this is no such file.
const LONGEST: u64 = 1 << 20;

/// Makes the sandbox's run folder with its files. Blocks.
pub(crate) fn write(dir: &SandboxDir, plan: &SandboxPlan) -> Outcome<()> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |error: std::io::Error| {
            Fault::because(format!("cannot create {}", path.display()), &error)
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

/// A file of the host's that a pod gets a copy of; empty where the host has none.
fn host_file(path: &Path) -> Vec<u8> {
    let regular =
        fs::metadata(path).is_ok_and(|metadata| metadata.is_file() && metadata.len() <= LONGEST);
    if regular {
        fs::read(path).unwrap_or_default()
    } else {
        Vec::new()
    }
}

/// All users of a container read these.
fn put(path: &Path, content: &[u8]) -> std::io::Result<()> {
    let mut file = fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o644)
        .open(path)?;
    file.write_all(content)
}
