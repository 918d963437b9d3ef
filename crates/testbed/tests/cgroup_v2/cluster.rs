//! A node of a cluster, in a guest: tests of the suite that need no kubectl, on the model API server.

use anyhow::Result;
use rubelet_testbed::agent::binary;
use rubelet_testbed::packages;
use rubelet_testbed::vm::Image;

use crate::guest::{MODULES, run_after};
use crate::guest_setup::PACKAGES;

/// Filters that match the names of exactly these tests.
const TESTS: [&str; 3] = [
    "away::after_a_reboot",
    "away::no_value_of_a_secret",
    "caches::a_pod_starts_although",
];
/// It must exist, and is not used.
const KUBECTL: &str = "#!/bin/sh\nexit 1\n";
/// A node needs an address, and the guest has only the loopback interface, whose MTU is too large for a
/// bridge.
const ADDRESS: &str = "ip link set lo mtu 1500 && ip address add 10.99.0.1/32 dev lo && \
    ip route add default dev lo src 10.99.0.1";

#[test]
fn a_joined_node_runs_and_recovers_its_pods() -> Result<()> {
    packages::ensure()?;
    let image = Image::default()
        .programs(["/usr/sbin/nft", "/sbin/ip"])
        .program("/usr/local/bin/rubelet", binary()?)
        .file("/usr/bin/dpkg-query", PACKAGES)
        .file("/usr/bin/kubectl", KUBECTL)
        .modules(&MODULES);
    let prepare = format!(
        "chmod 755 /usr/bin/dpkg-query /usr/bin/kubectl; {ADDRESS}; \
         export CI=true RUBELET_BIN=/usr/local/bin/rubelet RUBELET_TEST_RUNTIME=embedded"
    );
    let output = run_after(
        image,
        &prepare,
        "rubelet-testbed",
        &["--test", "cluster"],
        &format!("{} --test-threads 1", TESTS.join(" ")),
    )?;
    let passed = format!("{} passed", TESTS.len());
    assert!(output.contains(&passed), "{output}");
    Ok(())
}
