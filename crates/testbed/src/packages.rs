//! Debian packages: installs the test bed's dependencies, and finds a usable containerd.

pub mod containerd;
pub mod kubectl;
pub mod line;
mod private_apt;
mod suite;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::command::stdout_of;
use crate::scratch::lock::HostLock;

/// Packages that are installed on the host.
pub const NEEDED: [&str; 10] = [
    "busybox-static",
    "containernetworking-plugins",
    "crun",
    "dbus-daemon",
    "iproute2",
    "iptables",
    "nftables",
    "openssh-client",
    "openssl",
    "runc",
];

/// The statically linked busybox that images are made of.
pub(crate) const BUSYBOX: &str = "/bin/busybox";
/// The OCI runtime that containerd uses.
pub(crate) const RUNC: &str = "/usr/sbin/runc";
/// The directory of the CNI plugins.
pub(crate) const CNI_PLUGINS: &str = "/usr/lib/cni";
/// The program that shows firewall tables.
pub(crate) const NFT: &str = "/usr/sbin/nft";
/// The program that copies images between stores.
pub(crate) const SKOPEO: &str = "/usr/bin/skopeo";
/// The program that changes network interfaces.
pub(crate) const IP: &str = "/sbin/ip";

/// Installs missing packages of [`NEEDED`]; returns their names.
///
/// # Errors
/// When this isn't root, or apt can't install a package.
pub fn ensure() -> Result<Vec<&'static str>> {
    ensure_all(&NEEDED)
}

/// Installs the virtual machine emulator if it is missing; returns its path.
///
/// # Errors
/// As [`ensure`].
pub(crate) fn ensure_emulator() -> Result<&'static str> {
    ensure_all(&["busybox-static", "qemu-system-x86"])?;
    Ok("/usr/bin/qemu-system-x86_64")
}

/// Installs the program that shares directories with guests if it is missing; returns its path. To be called after
/// [`ensure_emulator`].
///
/// # Errors
/// As [`ensure`].
pub(crate) fn ensure_virtiofsd() -> Result<&'static Path> {
    // A part of the emulator until Debian 12, a package of its own since.
    let find = || {
        let paths = ["/usr/lib/qemu/virtiofsd", "/usr/libexec/virtiofsd"];
        paths.map(Path::new).into_iter().find(|path| path.exists())
    };
    if let Some(found) = find() {
        return Ok(found);
    }
    ensure_all(&["virtiofsd"])?;
    find().context("the package virtiofsd has no program of that name")
}

/// Installs the program that makes ext4 file systems if it is missing.
///
/// # Errors
/// As [`ensure`].
pub(crate) fn ensure_ext4() -> Result<()> {
    ensure_all(&["e2fsprogs"]).map(drop)
}

/// Installs the program that makes XFS file systems if it is missing.
///
/// # Errors
/// As [`ensure`].
pub(crate) fn ensure_xfs() -> Result<()> {
    ensure_all(&["xfsprogs"]).map(drop)
}

/// Installs [`SKOPEO`] if it is missing.
///
/// # Errors
/// As [`ensure`].
pub(crate) fn ensure_skopeo() -> Result<()> {
    ensure_all(&["skopeo"]).map(drop)
}

/// Installs systemd if it is missing, but not as the machine's init.
///
/// # Errors
/// As [`ensure`].
pub(crate) fn ensure_systemd() -> Result<()> {
    ensure_all(&["systemd"]).map(drop)
}

/// Installs systemd with logind, and the bus that logind is on, if they are missing.
///
/// # Errors
/// As [`ensure`].
pub(crate) fn ensure_logind() -> Result<()> {
    ensure_all(&["systemd", "dbus"]).map(drop)
}

/// Installs the program that loads AppArmor's profiles if it is missing.
///
/// # Errors
/// As [`ensure`].
pub(crate) fn ensure_apparmor() -> Result<()> {
    ensure_all(&["apparmor"]).map(drop)
}

/// Installs the ping of Debian if it is missing; returns its path.
///
/// # Errors
/// As [`ensure`].
pub fn ensure_ping() -> Result<&'static str> {
    ensure_all(&["iputils-ping"])?;
    Ok("/usr/bin/ping")
}

/// Installs the programs of Debian that the tests of `rubelet net` compare it with, if they are missing.
///
/// # Errors
/// As [`ensure`].
pub fn ensure_network_tools() -> Result<()> {
    ensure_all(&["iputils-ping", "mtr-tiny", "traceroute"]).map(drop)
}

fn ensure_all(names: &[&'static str]) -> Result<Vec<&'static str>> {
    if !rustix::process::geteuid().is_root() {
        bail!("containers need root: run this command again as root");
    }
    let _lock = HostLock::take()?;
    let missing = missing(names, &installed(names)?);
    if missing.is_empty() {
        return Ok(missing);
    }
    if !has_package_lists() {
        update()?;
    }
    // Existing lists may be too old to name files that the archive still has.
    if install(&missing).is_err() {
        update()?;
        install(&missing)?;
    }
    Ok(missing)
}

/// The first package that a package depends on, in the machine's own suite.
///
/// # Errors
/// apt knows no such package.
pub(crate) fn dependency_of(name: &str) -> Result<String> {
    if !has_package_lists() {
        update()?;
    }
    let text = stdout_of(Command::new("apt-cache").args(["depends", name]))?;
    let found = text
        .lines()
        .find_map(|line| line.trim().strip_prefix("Depends: "));
    let found = found.with_context(|| format!("the package {name} depends on nothing"))?;
    Ok(found.to_owned())
}

/// Downloads a package of the machine's own suite into a directory; the path of the .deb file.
///
/// # Errors
/// It can't be downloaded.
pub(crate) fn download(name: &str, dir: &Path) -> Result<PathBuf> {
    let run = || {
        let mut command = Command::new("apt-get");
        // Its sandbox user can't write into a directory of root.
        command
            .args(["-o", "APT::Sandbox::User=root", "download", name])
            .current_dir(dir);
        stdout_of(&mut command)
    };
    if run().is_err() {
        // The lists may be too old to name files that the archive still has.
        update()?;
        run()?;
    }
    std::fs::read_dir(dir)?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .find(|path| path.extension().is_some_and(|ext| ext == "deb"))
        .with_context(|| format!("apt-get left no .deb file of {name} in {}", dir.display()))
}

/// The installed ones of these, as dpkg prints them.
fn installed(names: &[&str]) -> Result<String> {
    let mut query = Command::new("dpkg-query");
    query
        .args(["--show", "--showformat", "${Package} ${db:Status-Status}\n"])
        .args(names);
    let output = crate::command::output_of(&mut query)
        .context("the test bed takes its programs from Debian packages; dpkg-query is missing")?;
    // dpkg-query exits 1 if it does not know a package; the others are printed all the same.
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn missing(names: &[&'static str], installed: &str) -> Vec<&'static str> {
    names
        .iter()
        .copied()
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
        let wanted = ["busybox-static", "iproute2", "iptables", "runc"];
        let text = "busybox-static installed\niptables config-files\nrunc installed\n";
        assert_eq!(missing(&wanted, text), ["iproute2", "iptables"]);
    }
}
