//! What tests of ring 3 need in a guest.

use std::time::Duration;

use anyhow::Result;
use rubelet_testbed::agent::binary;
use rubelet_testbed::runtime::Kind;
use rubelet_testbed::vm::Image;
use rubelet_testbed::{CgroupDriver, cgroup_driver, packages, runtime, wait};

use crate::guest::{MEMORY_MIB, MODULES, TIMEOUT, run_after};

/// A node needs an address, and the guest has only the loopback interface, whose MTU is too large for a
/// bridge.
const ADDRESS: &str = "ip link set lo mtu 1500 && ip address add 10.99.0.1/32 dev lo && \
    ip route add default dev lo src 10.99.0.1";

/// A guest may be ten times slower than its host.
const PATIENCE: u32 = 10;

/// The module of the kernel with the device `/dev/net/tun`, which tests give to containers.
const DEVICE_MODULES: [&str; 1] = ["tun"];

/// Modules of the kernel that CNI's plugin `portmap` uses.
const PORTMAP_MODULES: [&str; 8] = [
    "nft_compat",
    "xt_MASQUERADE",
    "xt_addrtype",
    "xt_comment",
    "xt_mark",
    "xt_multiport",
    "xt_nat",
    "xt_tcpudp",
];

/// What makes the pods of a guest, and their cgroups.
#[derive(Debug, Clone, Copy)]
pub(crate) struct GuestSetup {
    pub(crate) runtime: Kind,
    pub(crate) driver: CgroupDriver,
    /// How long a program may take.
    pub(crate) timeout: Duration,
    /// The memory of the guest, in MiB.
    pub(crate) memory_mib: u32,
    /// Whether systemd is on D-Bus.
    pub(crate) has_bus: bool,
}

impl GuestSetup {
    pub(crate) const EMBEDDED: Self = Self {
        runtime: Kind::Embedded,
        driver: CgroupDriver::Cgroupfs,
        timeout: TIMEOUT,
        memory_mib: MEMORY_MIB,
        has_bus: false,
    };
    /// The one that most machines have.
    pub(crate) const SYSTEMD: Self = Self {
        driver: CgroupDriver::Systemd,
        ..Self::EMBEDDED
    };

    /// Runs the tests of a program of ring 3 whose names match the filter; returns the output.
    pub(crate) fn run(self, program: &str, filter: &str) -> Result<String> {
        packages::ensure()?;
        let image = Image::default().modules(&MODULES).modules(&DEVICE_MODULES);
        let mut image = image.on_host_root();
        if self.runtime == Kind::Containerd {
            packages::containerd::ensure()?;
            image = image.modules(&PORTMAP_MODULES);
        }
        if self.driver == CgroupDriver::Systemd {
            image = match self.has_bus {
                true => image.systemd_on_bus()?,
                false => image.systemd()?,
            };
        }
        run_after(
            image,
            self.memory_mib,
            &self.prepare()?,
            "rubelet-testbed",
            &["--test", program],
            filter,
            self.timeout,
        )
    }

    /// Most tests wait most of the time, but containerd needs the processor of a guest for itself.
    pub(crate) fn threads(self) -> u32 {
        match self.runtime {
            Kind::Containerd | Kind::Crio => 1,
            Kind::Embedded => 3,
        }
    }

    /// The shell command before the tests. With CI=true a missing dependency is an error, not a skipped test.
    fn prepare(self) -> Result<String> {
        Ok(format!(
            "{ADDRESS}; export CI=true RUBELET_BIN={} {}={} {}={} {}={}",
            binary()?.display(),
            wait::PATIENCE,
            PATIENCE,
            runtime::VARIABLE,
            self.runtime.name(),
            cgroup_driver::VARIABLE,
            self.driver.name(),
        ))
    }
}
