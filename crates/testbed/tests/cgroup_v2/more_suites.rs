//! Further programs of ring 3 run in a guest, with each runtime and each driver of cgroups. They take too long for each
//! run: `cargo xtask test --all` has them, and each runs by its full name.

/// A module for a setup, with a test for each of these programs.
macro_rules! programs {
    ($setup:ident, $runtime:ident, $driver:ident: $($program:ident)*) => {
        mod $setup {
            use std::time::Duration;

            use anyhow::Result;
            use rubelet_testbed::CgroupDriver;
            use rubelet_testbed::runtime::Kind;

            use crate::guest_setup::GuestSetup;
            use crate::suites::run;

            const SETUP: GuestSetup = GuestSetup {
                runtime: Kind::$runtime,
                driver: CgroupDriver::$driver,
                timeout: Duration::from_secs(3000),
                // A pod of `cluster` may take all of it.
                memory_mib: 8192,
                // crun, which `cri` uses as well, has no other way to systemd.
                has_bus: true,
            };

            $(
                #[test]
                fn $program() -> Result<()> {
                    run(SETUP, stringify!($program))
                }
            )*
        }
    };
}

programs! { embedded, Embedded, Cgroupfs:
    adoption api cli cluster cri environment faults fifty image_volumes images life lifecycle logs manifests messages
    node_allocatable resources security stats user_namespaces volumes
}

// `suites` has two more of them.
programs! { embedded_systemd, Embedded, Systemd:
    adoption api cli cluster cri environment faults fifty image_volumes images life lifecycle logs manifests messages
    security stats user_namespaces volumes
}

programs! { containerd, Containerd, Cgroupfs:
    cluster environment lifecycle logs node_allocatable resources security stats volumes
}

programs! { containerd_systemd, Containerd, Systemd:
    cluster environment lifecycle logs node_allocatable resources security stats volumes
}
