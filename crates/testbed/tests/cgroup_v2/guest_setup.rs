//! What tests of ring 3 need in a guest.

use anyhow::Result;
use rubelet_testbed::agent::binary;
use rubelet_testbed::runtime::Kind;
use rubelet_testbed::vm::Image;
use rubelet_testbed::{CgroupDriver, cgroup_driver, packages, runtime};

use crate::guest::{MODULES, TARGET};

/// The programs of this machine that they run.
const PROGRAMS: [&str; 4] = [
    "/usr/sbin/runc",
    "/usr/bin/crun",
    "/usr/sbin/nft",
    "/sbin/ip",
];
/// Everything that they need is in the image; there are no packages in the guest.
pub(crate) const PACKAGES: &str = "#!/bin/sh\nfor name; do echo \"$name installed\"; done\n";

/// What makes the pods of a guest, and their cgroups.
#[derive(Debug, Clone, Copy)]
pub(crate) struct GuestSetup {
    pub(crate) runtime: Kind,
    pub(crate) driver: CgroupDriver,
}

impl GuestSetup {
    pub(crate) const EMBEDDED: Self = Self {
        runtime: Kind::Embedded,
        driver: CgroupDriver::Cgroupfs,
    };

    /// The image with what tests need, after [`Self::prepare`].
    pub(crate) fn image(self) -> Result<Image> {
        packages::ensure()?;
        let mut image = Image::default()
            .modules(&MODULES)
            .programs(PROGRAMS)
            .program("/usr/local/bin/rubelet", binary()?)
            .file("/usr/bin/dpkg-query", PACKAGES);
        if self.driver == CgroupDriver::Systemd {
            image = image.systemd()?;
        }
        if self.runtime == Kind::Containerd {
            image = image.containerd_of_tests(TARGET)?;
        }
        Ok(image)
    }

    /// Most tests wait most of the time, but containerd needs the processor of a guest for itself.
    pub(crate) fn threads(self) -> u32 {
        match self.runtime {
            Kind::Containerd | Kind::Crio => 1,
            Kind::Embedded => 3,
        }
    }

    /// The shell command before the tests. With CI=true a missing dependency is an error, not a skipped test.
    pub(crate) fn prepare(self) -> String {
        format!(
            "chmod 755 /usr/bin/dpkg-query; \
             export CI=true RUBELET_BIN=/usr/local/bin/rubelet {}={} {}={}",
            runtime::VARIABLE,
            self.runtime.name(),
            cgroup_driver::VARIABLE,
            self.driver.name(),
        )
    }
}
