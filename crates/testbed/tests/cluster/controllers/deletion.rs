//! Pods that are deleted with and without force.

use super::{applies, pods};
use crate::joined::{Joined, pod};

/// A script that ignores SIGTERM.
const STUBBORN: &str = "trap 'echo no' TERM; echo begins; while :; do sleep 0.1; done";

#[test]
fn a_pod_ends_after_its_grace_period_or_by_force() {
    if !applies() {
        return;
    }
    let joined = Joined::start("worker");
    for name in ["patient", "forced"] {
        let mut stubborn = pod(name, STUBBORN);
        stubborn["spec"]["terminationGracePeriodSeconds"] = 3.into();
        joined.create(&stubborn);
        joined.wait_ready(name);
    }
    joined
        .kubectl
        .stdout(&["delete", "pod", "patient", "--timeout=60s"]);
    joined.kubectl.stdout(&[
        "delete",
        "pod",
        "forced",
        "--force",
        "--grace-period=0",
        "--timeout=60s",
    ]);
    assert_eq!(pods(&joined, "forced").len(), 0);
    // A pod that the API server has removed does not continue to run.
    joined.wait_empty();
    joined.cluster.no_violations().unwrap();
}
