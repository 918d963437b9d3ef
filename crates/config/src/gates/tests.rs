//! Tests of `gates`.

use super::{FeatureGates, Gate, GateError, GateOwner, Stage};
use std::collections::BTreeMap;

fn gates(entries: &[(&str, bool)]) -> Result<FeatureGates, (String, GateError)> {
    let map: BTreeMap<String, bool> = entries
        .iter()
        .map(|&(name, value)| (name.to_owned(), value))
        .collect();
    FeatureGates::from_map(&map)
}

#[test]
fn the_table_is_sorted_so_that_names_are_found() {
    assert!(Gate::all().is_sorted_by(|a, b| a.name < b.name));
    assert_eq!(Gate::find("NodeSwap").unwrap().stage, Stage::Stable);
    assert_eq!(
        Gate::find("GangScheduling").unwrap().owner,
        GateOwner::Other
    );
    for name in super::CHECKS.iter().chain(&super::SWITCHES) {
        assert!(Gate::find(name).is_some(), "{name}");
    }
}

#[test]
fn a_gate_has_its_set_value_or_its_default() {
    let gates = gates(&[("MemoryQoS", true), ("KubeletCrashLoopBackOffMax", false)]).unwrap();
    assert!(gates.enabled("MemoryQoS"));
    assert!(!gates.enabled("KubeletCrashLoopBackOffMax"));
    assert!(gates.enabled("GracefulNodeShutdown"));
    assert!(gates.enabled("EventedPLEG"), "not as upstream");
    assert!(!gates.enabled("CPUManagerPolicyAlphaOptions"));
    assert!(!gates.enabled("NoSuchGate"));
}

#[test]
fn all_alpha_sets_each_alpha_gate_that_is_not_named() {
    let gates = gates(&[
        ("AllAlpha", true),
        ("EventedPLEG", false),
        ("AllBeta", false),
    ])
    .unwrap();
    assert!(gates.enabled("MemoryQoS"));
    assert!(!gates.enabled("EventedPLEG"));
    assert!(!gates.enabled("GracefulNodeShutdown"));
    assert!(gates.enabled("NodeSwap"));
}

#[test]
fn unknown_and_locked_gates_are_refused() {
    let message = |name: &str, value| gates(&[(name, value)]).unwrap_err().1.to_string();
    assert_eq!(
        message("GracefulNodeShutdwn", true),
        "unknown feature gate; did you mean \"GracefulNodeShutdown\"?"
    );
    assert_eq!(
        message("Dockershim", true),
        "unknown feature gate; Kubernetes 1.36 has no gate of this name"
    );
    assert_eq!(
        message("NodeSwap", false),
        "cannot be false; the gate is locked to true"
    );
    assert!(gates(&[("NodeSwap", true), ("GangScheduling", true)]).is_ok());
}
