//! systemd as the first process of a guest.

use std::path::Path;

use anyhow::{Context, Result};

use super::image::Image;
use crate::packages;

/// Programs of systemd, where Debian has them. Some releases have more of them than others.
const PROGRAMS: [&str; 4] = [
    "/lib/systemd/systemd",
    "/lib/systemd/systemd-executor",
    "/lib/systemd/systemd-shutdown",
    "/bin/systemctl",
];
/// What logind and its bus need, and two programs that ask them.
const LOGIND_PROGRAMS: [&str; 4] = [
    "/lib/systemd/systemd-logind",
    "/usr/bin/dbus-daemon",
    "/usr/bin/busctl",
    "/usr/bin/systemd-inhibit",
];

/// Units of the test.
const UNITS: &str = "/etc/systemd/system";
/// Units of packages.
const PACKAGED_UNITS: &str = "/lib/systemd/system";
/// Configuration of the bus.
const BUS: &str = "/usr/share/dbus-1";

/// The only units that systemd starts in a guest.
const TARGET: &str = "[Unit]\nRequires=line.service\nDefaultDependencies=no\n";
const SERVICE: &str = "[Unit]\nDefaultDependencies=no\n[Service]\nExecStart=/bin/sh /line.sh\n\
                       StandardInput=null\nDelegate=yes\n";

/// D-Bus without the units that its packaged ones start after.
const BUS_SOCKET: &str =
    "[Unit]\nDefaultDependencies=no\n[Socket]\nListenStream=/run/dbus/system_bus_socket\n";
const BUS_SERVICE: &str = "[Unit]\nDefaultDependencies=no\nRequires=dbus.socket\n[Service]\n\
                           ExecStart=/usr/bin/dbus-daemon --system --address=systemd: --nofork --nopidfile \
                           --systemd-activation\n";

/// Packaged units of logind, of its bus, and of what both start after.
const LOGIND_UNITS: [&str; 5] = [
    "basic.target",
    "dbus.service",
    "dbus.socket",
    "sysinit.target",
    "systemd-logind.service",
];
/// Packaged units of a shutdown.
const SHUTDOWN_UNITS: [&str; 5] = [
    "final.target",
    "poweroff.target",
    "shutdown.target",
    "systemd-poweroff.service",
    "umount.target",
];
/// Who may own logind's and systemd's names on the bus.
const POLICIES: [&str; 2] = [
    "system.d/org.freedesktop.login1.conf",
    "system.d/org.freedesktop.systemd1.conf",
];

impl Image {
    /// Makes systemd the init process, without any of its usual units.
    ///
    /// # Errors
    /// Its package can't be installed.
    pub fn systemd(self) -> Result<Self> {
        packages::ensure_systemd()?;
        Ok(self
            .programs_of_host(&PROGRAMS)
            .file(&format!("{UNITS}/default.target"), TARGET)
            .file(&format!("{UNITS}/line.service"), SERVICE)
            .file("/etc/machine-id", "0123456789abcdef0123456789abcdef\n"))
    }

    /// As [`Image::systemd`], with D-Bus, which crun needs to ask systemd for scopes. Only for an image on the host's
    /// root, which has its program and its configuration.
    ///
    /// # Errors
    /// A package can't be installed.
    pub fn systemd_on_bus(self) -> Result<Self> {
        packages::ensure_logind()?;
        let target = format!("{TARGET}Wants=dbus.socket\n");
        Ok(self
            .systemd()?
            .file(&format!("{UNITS}/default.target"), target)
            .file(&format!("{UNITS}/dbus.socket"), BUS_SOCKET)
            .file(&format!("{UNITS}/dbus.service"), BUS_SERVICE))
    }

    /// As [`Image::systemd`], with D-Bus and logind, and the usual units of a shutdown.
    ///
    /// # Errors
    /// A package can't be installed.
    pub fn logind(self) -> Result<Self> {
        packages::ensure_logind()?;
        let target = format!("{TARGET}Wants=dbus.socket systemd-logind.service\n");
        let mut image = self
            .systemd()?
            .programs_of_host(&LOGIND_PROGRAMS)
            .file(&format!("{UNITS}/default.target"), target)
            .file(
                "/etc/passwd",
                "root:x:0:0:root:/root:/bin/sh\nmessagebus:x:101:101::/:/bin/false\n",
            )
            .file("/etc/group", "root:x:0:\nmessagebus:x:101:\n");
        for unit in LOGIND_UNITS.iter().chain(&SHUTDOWN_UNITS) {
            image = image.file_of_host(&format!("{PACKAGED_UNITS}/{unit}"))?;
        }
        for file in POLICIES.iter().chain(&["system.conf"]) {
            image = image.file_of_host(&format!("{BUS}/{file}"))?;
        }
        Ok(image)
    }

    /// Adds those of these programs that this machine has.
    fn programs_of_host(self, programs: &[&str]) -> Self {
        let all = programs.iter().copied();
        self.programs(all.filter(|path| Path::new(path).exists()))
    }

    fn file_of_host(self, path: &str) -> Result<Self> {
        let content = std::fs::read(path).with_context(|| format!("cannot read {path}"))?;
        Ok(self.file(path, content))
    }
}
