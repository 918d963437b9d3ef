//! Debian packages: installs what the test bed needs, and finds a containerd that runs here.

pub mod containerd;
pub mod line;
mod private_apt;
mod suite;

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::command::stdout_of;
use crate::scratch::lock::HostLock;

/// What is installed on the host, by Debian package name.
pub const NEEDED: [&str; 5] = [
    "busybox-static",
    "containernetworking-plugins",
    "iproute2",
    "iptables",
    "runc",
];

/// The statically linked busybox that images are made of.
pub(crate) const BUSYBOX: &str = "/bin/busybox";
/// The OCI runtime that containerd uses.
pub(crate) const RUNC: &str = "/usr/sbin/runc";
/// The folder of the CNI plugins.
pub(crate) const CNI_PLUGINS: &str = "/usr/lib/cni";
/// The program that changes network interfaces.
pub(crate) const IP: &str = "/sbin/ip";

/// Installs those of [`NEEDED`] that are missing; the names of what was installed.
///
/// # Errors
/// When this isn't root, or apt can't install a package.
pub fn ensure() -> Result<Vec<&'static str>> {
    if !rustix::process::geteuid().is_root() {
        bail!("containers need root: run this command again as root");
    }
    let _lock = HostLock::take()?;
    let missing = missing(&installed()?);
    if missing.is_empty() {
        return Ok(missing);
    }
    if !has_package_lists() {
        update()?;
    }
    // Lists that are there may be too old to name files that the archive still has.
    if install(&missing).is_err() {
        update()?;
        install(&missing)?;
    }
    Ok(missing)
}

/// The installed ones of [`NEEDED`], as dpkg prints them.
fn installed() -> Result<String> {
    let mut query = Command::new("dpkg-query");
    query
        .args(["--show", "--showformat", "${Package} ${db:Status-Status}\n"])
        .args(NEEDED);
    let output = crate::command::output_of(&mut query)
        .context("the test bed takes its programs from Debian packages; dpkg-query is missing")?;
    // dpkg-query exits 1 when it knows none of a package; the others are printed all the same.
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn missing(installed: &str) -> Vec<&'static str> {
    NEEDED
        .into_iter()
        .filter(|name| {
            !installed
                .lines()
                .any(|line| line == format!("{name} installed"))
        })
        .collect()
}

fn has_package_lists() -> bool {
    std::fs::read_dir("/var/lib/apt/lists").is_ok_and(|entries| {
        entries
            .filter_map(Result::ok)
            .any(|entry| entry.file_name().to_string_lossy().contains("_Packages"))
    })
}

fn update() -> Result<()> {
    stdout_of(Command::new("apt-get").arg("update")).map(drop)
}

fn install(names: &[&str]) -> Result<()> {
    stdout_of(
        Command::new("apt-get")
            .env("DEBIAN_FRONTEND", "noninteractive")
            .args([
                "install",
                "--yes",
                "--no-install-recommends",
                "-o",
                "DPkg::Lock::Timeout=120",
            ])
            .args(names),
    )
    .map(drop)
    .with_context(|| format!("cannot install the Debian packages {}", names.join(", ")))
}

/// The codename of this machine's Debian, such as `bookworm`.
fn codename() -> Result<String> {
    let path = Path::new("/etc/os-release");
    let text = std::fs::read_to_string(path).context("cannot read /etc/os-release")?;
    suite::codename(&text).context("/etc/os-release has no VERSION_CODENAME; this needs Debian")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_packages_that_are_not_fully_installed_are_missing() {
        let text = "busybox-static installed\niptables config-files\nrunc installed\n";
        assert_eq!(
            missing(text),
            ["containernetworking-plugins", "iproute2", "iptables"]
        );
    }
}
